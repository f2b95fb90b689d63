"""A gradient enters the loss and has no graph of its own.

`torch.autograd.grad` gives plain numbers unless `create_graph=True` asks for a graph through them. A gradient penalty
(WGAN-GP, R1), the residual of a differential equation or forces as the derivative of an energy then adds a constant to
the loss: its value is printed and falls or rises with the rest, and it has no influence on any weight.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.flows import ends, scales
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, syntax, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C248",
    name="penalty-without-graph",
    title="A gradient in the loss was taken without create_graph=True",
    severity=Severity.HIGH,
    sees="The result of torch.autograd.grad without create_graph as a term of a value that is sent backward.",
    matters="The term is a constant to backward(): it changes the loss that is shown and no weight.",
    alike=("a gradient that is only logged, detached, or a weight of another term",
           "first-order MAML and steps on an input, whose gradients go through a network again",
           "an actor that follows the gradient of a critic, a constant factor of its action"),
    confirm=("print(penalty.requires_grad): False", "print(penalty.grad_fn): None"),
)
_CONSTANT = re.compile(r"real_g|target|orig|true|(^|_)gt|ref|teacher|weight|first_order|fomaml", re.IGNORECASE)
_STEPS = frozenset({"training_step"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every gradient that is taken without a graph."""
    for file in project.files:
        if "autograd" not in file.text:
            continue
        code = syntax(file)
        for call in code.calls("grad"):
            if code.qualified(call.func) != "torch.autograd.grad" or not _plain(call):
                continue
            statement = code.statement(call)
            if isinstance(statement, ast.Assign) and any(_CONSTANT.search(written(t)) for t in statement.targets):
                continue
            where = _sent_backward(project, code, call)
            if where:
                yield _finding(code, call, where)


def _plain(call: ast.Call) -> bool:
    """Whether no graph is asked for."""
    if any(k.arg is None for k in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
        return False
    given = argument(call, 4, "create_graph")
    return given is None or (isinstance(given, ast.Constant) and not given.value)


def _sent_backward(project: Project, code: Syntax, node: ast.expr, left: int = 2) -> str:
    """Where the value is sent backward, in its function or by those that call it; "" if nowhere."""
    for kind, end in ends(code, node, scales):
        function = code.function(end)
        if kind == "backward":
            return code.at(end)
        if not isinstance(function, FunctionNode) or left <= 0:
            continue
        if function.name in _STEPS:
            return code.at(end)
        for file in project.files:
            other = syntax(file)
            for call in other.calls(function.name):
                found = _sent_backward(project, other, call, left - 1) if call is not node else ""
                if found:
                    return found
    return ""


def _finding(code: Syntax, call: ast.Call, where: str) -> Finding:
    change = Change(code.file, "keep the graph of the gradient").pass_argument(call, "create_graph", "True")
    positional = len(call.args) > 4
    return RULE.finding(
        f"the gradient that {last_name(call.func)} takes at {code.at(call)} is a term of what is sent backward at "
        f"{where}, and without create_graph=True it is a constant there",
        code.place(call),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "no graph", "gradient": written(call)[:80]},
        patch=() if positional else change.patches(),
    )
