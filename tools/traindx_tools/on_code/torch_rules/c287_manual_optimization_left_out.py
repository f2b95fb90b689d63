"""Manual optimization is switched on and nothing is optimized by hand.

With `self.automatic_optimization = False` Lightning calls neither backward nor the optimizer: training_step has to call
manual_backward(), step() and zero_grad() itself. One that only returns its loss trains nothing, without an error: all
epochs run, the loss scatters around its first value and global_step stays 0.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C287",
    name="manual-optimization-left-out",
    title="Manual optimization without backward or step",
    severity=Severity.CRITICAL,
    sees="automatic_optimization = False in a LightningModule that calls no backward, or steps no optimizer.",
    matters="No weight ever changes; the run goes through all its epochs.",
    alike=(
        "a training_step that optimizes by hand",
        "a helper that is given the module and optimizes it",
        "a base class that optimizes by hand",
    ),
    confirm=("print(trainer.global_step) at the end: 0",),
)
_BASES = frozenset({"LightningModule", "object", "ABC"})
_SWITCHES = ("self.automatic_optimization", "automatic_optimization")


def check(project: Project) -> Iterator[Finding]:
    """Look at every module that switches automatic optimization off."""
    for file in project.files:
        if "automatic_optimization" not in file.text:
            continue
        code = syntax(file)
        for owner in code.of(ast.ClassDef):
            switch = _switch(owner)
            methods = {f.name: f for f in owner.body if isinstance(f, FunctionNode)}
            step = methods.get("training_step")
            if switch is None or step is None or not {last_name(b) for b in owner.bases} <= _BASES:
                continue
            missing = _missing(owner)
            if missing and not _handed_over(owner):
                yield _finding(code, owner, switch, step, missing)


def _switch(owner: ast.ClassDef) -> ast.Assign | None:
    """`self.automatic_optimization = False`, or the attribute of the class."""
    for node in below(owner):
        if isinstance(node, ast.Assign) and any(written(t) in _SWITCHES for t in node.targets):
            return node if isinstance(node.value, ast.Constant) and node.value.value is False else None
    return None


def _missing(owner: ast.ClassDef) -> list[str]:
    """What of backward and step no method of the class calls."""
    called = {last_name(n.func) for n in below(owner) if isinstance(n, ast.Call)}
    named = {n.attr for n in below(owner) if isinstance(n, ast.Attribute)}
    lacks = [] if {"manual_backward", "backward"} & (called | named) else ["manual_backward()"]
    if not {"step", "update"} & (called | named):
        lacks.append("optimizer.step()")
    return lacks


def _handed_over(owner: ast.ClassDef) -> bool:
    """Whether something else may optimize: what is given the module or its optimizers, or inherited behaviour."""
    for call in (n for n in below(owner) if isinstance(n, ast.Call)):
        given = [*call.args, *(k.value for k in call.keywords)]
        if any(written(a) == "self" for a in given) and last_name(call.func) not in ("super", "isinstance", "type"):
            return True
        name = written(call.func)
        if name == "super" or name.startswith("self."):
            own = {f.name for f in owner.body if isinstance(f, FunctionNode)} | {"optimizers"}
            if name.count(".") == 1 and "optim" in name and last_name(call.func) not in own:
                return True
    opts = [n for n in below(owner) if isinstance(n, ast.Call) and written(n.func) == "self.optimizers"]
    return bool(opts) and "optimizer.step()" in _missing(owner) and "manual_backward()" not in _missing(owner)


def _finding(code: Syntax, owner: ast.ClassDef, switch: ast.Assign, step: ast.AST, missing: list[str]) -> Finding:
    returns = any(isinstance(n, ast.Return) and n.value is not None for n in below(step))
    optimizers = [f for f in owner.body if isinstance(f, ast.FunctionDef) and f.name == "configure_optimizers"]
    single = len(optimizers) == 1 and written(optimizers[0]).count("optim.") == 1
    patch: tuple[Patch, ...] = ()
    if returns and single and len(missing) == 2:
        patch = Change(code.file, "let Lightning optimize").replace(switch.value, "True").patches()
    return RULE.finding(
        f"automatic_optimization = False at {code.at(switch)} leaves the update to {owner.name}.training_step at line "
        f"{getattr(step, 'lineno', 0)}, and the class never calls {' nor '.join(missing)}: no optimizer step is made",
        code.place(switch),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "manual", "class": owner.name, "missing": ", ".join(missing)},
        patch=patch,
    )
