"""A second model is the first one under another name.

`ref_model = model` copies a reference, not the weights: the "reference", "target" or "teacher" is trained along, its
KL to the policy is exactly 0, its targets move with every step. `copy.deepcopy(model)`, or a second instance that loads
the state, makes a second model.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import FunctionNode, Syntax, last_name, parameters, syntax, written

(RULE,) = pages("state", ("C186",))
_ROLES = "ref|reference|target|tgt|teacher|old|frozen|ema|momentum|prior|anchor"
_KINDS = "model|net|network|policy|q|qf|critic|actor|encoder|qnet|q_net|q_network"
_SECOND = re.compile(rf"({_ROLES})_?({_KINDS})?|({_KINDS})_({_ROLES}|targ)", re.IGNORECASE)
_FIRST = re.compile(rf"({_KINDS}|student|online|agent)(_(net|model))?", re.IGNORECASE)
_TRAINS = (".backward(", "value_and_grad", "jax.grad", ".step(")


def check(project: Project) -> Iterator[Finding]:
    """Look at every plain assignment of one model to another name."""
    if any("disable_adapter" in f.text for f in project.files):
        return
    for file in project.files:
        if "torch" not in file.text or not any(t in file.text for t in _TRAINS):
            continue
        code = syntax(file)
        for node in code.of(ast.Assign):
            target, value = node.targets[0], node.value
            if len(node.targets) != 1 or not isinstance(value, (ast.Name, ast.Attribute)):
                continue
            names = last_name(target), last_name(value)
            if not _SECOND.fullmatch(names[0]) or not _FIRST.fullmatch(names[1]) or not _is_model(code, value):
                continue
            if _only(code, target) and _used_as_model(code, target):
                yield _finding(code, node, target, value)


def _is_model(code: Syntax, value: ast.expr) -> bool:
    """Whether the name is a module that is made here, or given as an argument."""
    made = code.origin(value)
    if isinstance(made, ast.Call):
        return last_name(made.func)[:1].isupper() or last_name(made.func) in (
            "from_pretrained",
            "to",
            "cuda",
            "build_model",
        )
    owner = code.function(value)
    return isinstance(made, ast.Name) and isinstance(owner, FunctionNode) and made.id in parameters(owner)


def _only(code: Syntax, target: ast.expr) -> bool:
    return len(code.bindings(target)) == 1


def _used_as_model(code: Syntax, target: ast.expr) -> bool:
    """Whether it is run, put into eval mode, or frozen: a model of its own."""
    name = written(target)
    own = {f.name for f in code.of(ast.FunctionDef)}
    handed_on = any(
        last_name(c.func) in own and any(written(a) == name for a in c.args) and code.scope(c) is code.scope(target)
        for c in code.of(ast.Call)
    )
    return handed_on or any(
        t in code.file.text for t in (f"{name}(", f"{name}.eval(", f"{name}.parameters(", f"{name}.load_state_dict(")
    )


def _finding(code: Syntax, node: ast.Assign, target: ast.expr, value: ast.expr) -> Finding:
    return RULE.finding(
        f"{written(target)} = {written(value)} at {code.at(node)} is the same model under another name, no copy: what "
        "is meant to stay fixed is trained along",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "alias", "name": written(target), "of": written(value)},
    )
