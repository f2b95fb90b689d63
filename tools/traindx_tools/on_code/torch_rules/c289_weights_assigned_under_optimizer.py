"""The checkpoint is assigned after the optimizer was built.

`load_state_dict(..., assign=True)` does not copy into the parameters: it puts the checkpoint's tensors in their place,
as new Parameter objects. An optimizer that was built over `net.parameters()` before that keeps the old ones. Backward
fills the gradients of the new, step() goes over the old (which have none), and the network stays as it was loaded.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C289",
    name="weights-assigned-under-optimizer",
    title="A checkpoint is assigned after the optimizer was built",
    severity=Severity.CRITICAL,
    sees="load_state_dict(assign=True) on a model whose parameters an optimizer above already holds.",
    matters="The optimizer steps the replaced parameters: the weights in use never change.",
    alike=("a checkpoint that is copied (assign=False)", "an optimizer that is built after the checkpoint is loaded"),
    confirm=("{id(p) for p in net.parameters()} & {id(p) for g in opt.param_groups for p in g['params']}: empty",),
)


def check(project: Project) -> Iterator[Finding]:
    """Look at every load that assigns."""
    for file in project.files:
        if "assign" not in file.text or "load_state_dict" not in file.text:
            continue
        code = syntax(file)
        for call in code.calls("load_state_dict"):
            given = next((k for k in call.keywords if k.arg == "assign"), None)
            if given is None or not isinstance(given.value, ast.Constant) or given.value.value is not True:
                continue
            built = _built_before(code, call) if isinstance(call.func, ast.Attribute) else None
            if built is not None:
                yield _finding(code, call, given, built)


def _built_before(code: Syntax, load: ast.Call) -> ast.Call | None:
    """The optimizer over this model that exists when the checkpoint is assigned and is not built anew after."""
    assert isinstance(load.func, ast.Attribute)
    model, scope, owner = written(load.func.value), code.scope(load), code.owner(load)
    holders = [c for c in code.of(ast.Call) if _optimizer(c) and _holds(code, c, model)]
    here = [c for c in holders if code.scope(c) is scope]
    if here:
        earlier = [c for c in here if c.lineno < load.lineno]
        return earlier[-1] if len(earlier) == len(here) and _reached(code, earlier[-1], load) else None
    if not model.startswith("self.") or owner is None or getattr(scope, "name", "") == "__init__":
        return None
    first = [c for c in holders if code.owner(c) is owner]
    made = [c for c in first if getattr(code.scope(c), "name", "") == "__init__"]
    return made[0] if made and len(made) == len(first) else None


def _reached(code: Syntax, built: ast.Call, load: ast.Call) -> bool:
    """Whether the load follows the optimizer in the same run of the function: not the other branch of an if."""
    for up in code.above(built):
        if isinstance(up, ast.If):
            return any(up is a for a in code.above(load)) and not _apart(up, built, load)
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
    return True


def _apart(branch: ast.If, one: ast.AST, other: ast.AST) -> bool:
    inside = [{id(n) for s in part for n in below(s)} for part in (branch.body, branch.orelse)]
    return any((id(one) in a) != (id(other) in a) for a in inside)


def _optimizer(call: ast.Call) -> bool:
    name = last_name(call.func)
    return name.endswith(("Adam", "AdamW", "SGD", "RMSprop", "Adagrad", "Lion", "Adafactor", "NAdam", "RAdam", "LBFGS",
                          "AdamW8bit", "build_optimizer", "make_optimizer", "create_optimizer", "get_optimizer",
                          "Adamax", "Adadelta", "Muon"))  # fmt: skip


def _holds(code: Syntax, call: ast.Call, model: str) -> bool:
    """Whether an optimizer was given this model's parameters (or those of a part), or the model itself."""
    given = [*call.args, *(k.value for k in call.keywords)]
    parts = [n for a in given for n in below(code.origin(a) if isinstance(a, ast.Name) else a)]
    asked = [p.func.value for p in parts if isinstance(p, ast.Call) and isinstance(p.func, ast.Attribute)
             and p.func.attr in ("parameters", "named_parameters")]  # fmt: skip
    texts = [written(a) for a in asked]
    whole = last_name(call.func).endswith("optimizer") and any(written(a) == model for a in given)
    return whole or any(t == model or t.startswith(f"{model}.") for t in texts)


def _finding(code: Syntax, load: ast.Call, given: ast.keyword, built: ast.Call) -> Finding:
    assert isinstance(load.func, ast.Attribute)
    model = written(load.func.value)
    copy = None
    if "meta" not in code.file.text and "mmap" not in written(load):
        copy = Change(code.file, "copy into the parameters that the optimizer holds").replace(given.value, "False")
    return RULE.finding(
        f"{model}.load_state_dict(assign=True) at {code.at(load)} replaces the parameters of {model} after the "
        f"optimizer was built over them at line {built.lineno}: it holds the old parameters, which get no gradient",
        code.place(load),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "assigned", "optimizer_line": built.lineno, "model": model},
        patch=copy.patches() if copy is not None else (),
    )
