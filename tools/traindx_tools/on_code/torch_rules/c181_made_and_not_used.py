"""Something that shapes training is made and never used.

Class weights that are computed and given to no loss, a sampler that no loader gets, a scheduler that nobody steps, an
average of the weights that nobody updates: the code says what was meant, and the run does without.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.names import is_scheduler
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, last_name, syntax
from traindx_tools.rules import Rule

RULE = Rule(
    id="C181",
    name="made-and-not-used",
    title="Something that shapes training is made and never used",
    severity=Severity.MEDIUM,
    sees="Weights of a loss, a sampler, a scheduler or an average that is bound to a name which nothing reads.",
    matters="The run trains without what was meant: unweighted, unbalanced, at a constant learning rate.",
    alike=("a name that is read by other code through globals or getattr",),
    confirm=("python -m pyflakes or ruff F841 on the file", "grep for the name"),
)
_WEIGHTS = re.compile(r"(class|pos|sample|loss|label|focal|instance|example|category)_?weights?|weights?_(per|by)_\w+")
_SAMPLERS = frozenset(
    {"WeightedRandomSampler", "DistributedSampler", "BatchSampler", "RandomSampler", "SubsetRandomSampler"}
)
_AVERAGES = frozenset({"AveragedModel", "ExponentialMovingAverage", "ModelEmaV2", "ModelEma"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every name that is bound and never read."""
    for file in project.files:
        if "torch" not in file.text:
            continue
        code = syntax(file)
        read: dict[int, set[str] | None] = {}
        for node in code.of(ast.Assign):
            target = node.targets[0]
            if len(node.targets) != 1 or not isinstance(target, ast.Name) or target.id.startswith("_"):
                continue
            kind = _kind(code, target.id, node.value)
            scope = code.scope(node)
            if kind is None or (
                kind == "weights" and not isinstance(scope, ast.FunctionDef) and _is_shared(project, file.path)
            ):
                continue
            if id(scope) not in read:
                read[id(scope)] = _read_in(code, scope)
            names = read[id(scope)]
            if names is not None and target.id not in names:
                yield _finding(code, node, target.id, kind)


def _kind(code: Syntax, name: str, value: ast.expr) -> str | None:
    made = last_name(value.func) if isinstance(value, ast.Call) else ""
    if made and is_scheduler(code.qualified(value.func) if isinstance(value, ast.Call) else ""):
        return "scheduler"
    if made in _SAMPLERS:
        return "sampler"
    if made in _AVERAGES:
        return "average"
    if _WEIGHTS.fullmatch(name.lower()) and isinstance(value, (ast.Call, ast.BinOp, ast.ListComp)):
        return "weights" if made not in ("add_argument", "getattr", "get", "pop") else None
    return None


def _is_shared(project: Project, path: str) -> bool:
    """Whether other files may import what stands at the top level."""
    return len(project.files) > 1


def _read_in(code: Syntax, scope: ast.AST) -> set[str] | None:
    """The names that a scope reads or shares as global or nonlocal; None where any may be read, as through locals()."""
    if isinstance(scope, ast.Module) and "__all__" in code.file.text:
        return None
    if code.calls_in(scope, "locals", "globals", "vars", "eval", "exec"):
        return None
    shared = {n for node in code.inside(scope, ast.Global) for n in node.names}
    shared |= {n for node in code.inside(scope, ast.Nonlocal) for n in node.names}
    names = {n.id for n in code.inside(scope, ast.Name) if isinstance(n.ctx, ast.Load)}
    return names | shared


def _finding(code: Syntax, node: ast.Assign, name: str, kind: str) -> Finding:
    what = {
        "weights": "is computed and given to no loss",
        "sampler": "is made and given to no loader",
        "scheduler": "is made and never stepped: the learning rate stays as it is",
        "average": "is made and never updated or used",
    }[kind]
    return RULE.finding(
        f"{name} at {code.at(node)} {what}",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": kind, "name": name},
    )
