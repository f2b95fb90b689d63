"""A decay that counts from the beginning is applied to the rate of before.

`lr0 / (1 + k * epoch)`, `lr0 * gamma ** epoch` and `lr0 * (1 - step / total)` are meant for the initial rate. Applied
to the rate of the step before, and stored again, the factors multiply up: after ten epochs of 1 / (1 + 0.15 * epoch)
the rate is 52 times lower than it should be, and training stops learning without an error. A constant factor does the
same where it is meant for an epoch, or for one time, and runs in every training step.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code import compounding
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Loops, Syntax, parameters, syntax, written
from traindx_tools.on_code.trace import Place

(RULE,) = pages("schedules", ("C233",))
_RATE = re.compile(r"(^|_)(lr|learning_?rate|step_?size|eta|alpha)$", re.IGNORECASE)
_COUNTER = re.compile(
    r"^(epoch|ep|step|steps_done|global_step|it|itr|iteration|t|i|n_iter|num_updates|update|k|n|round)$", re.IGNORECASE
)
_RATES = re.compile(r"lr|rate|eta|step_?size|alpha")


def check(project: Project) -> Iterator[Finding]:
    """Look at rates that a traced step multiplies, and at every assignment of a rate to itself times something."""
    told: dict[tuple[str, int], Finding] = {}
    for loop in project.training_loops:
        for place in compounding.multiplied(loop):
            told[place.event.file.path, place.event.line] = _in_each_step(place)
    for file in project.files:
        if not file.mentions(_RATES):
            continue
        code = syntax(file)
        assigned: list[ast.Assign | ast.AugAssign] = [*code.of(ast.Assign), *code.of(ast.AugAssign)]
        for node in assigned:
            made = _factor(node)
            if made is None or not _RATE.search(_plain(made[0])) or not _outlives(code, node, made[0]):
                continue
            counter = _counter(code, node, made[1])
            if counter is None:
                continue
            found = _finding(code, node, made[0], counter)
            known = file.path, node.lineno
            yield told.pop(known) if known in told else found
    yield from told.values()


def _in_each_step(place: Place) -> Finding:
    event = place.event
    text = event.file.segment(event.node)
    return RULE.finding(
        f"{text} at {event.file.path}:{event.line} multiplies the current learning rate in every training step: it "
        "changes geometrically instead of being set from the base rate",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "each step", "expression": text},
    )


def _plain(target: ast.expr) -> str:
    """The name of a rate: of `self.lr`, `lr`, `group["lr"]`."""
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        return str(target.slice.value)
    return target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""


def _factor(node: ast.Assign | ast.AugAssign) -> tuple[ast.expr, ast.expr] | None:
    """(rate, factor) of `rate *= factor`, `rate = rate * factor`, `rate = factor * rate`, `rate = rate / factor`."""
    if isinstance(node, ast.AugAssign):
        return (node.target, node.value) if isinstance(node.op, (ast.Mult, ast.Div)) else None
    value = node.value
    if len(node.targets) != 1 or not isinstance(value, ast.BinOp) or not isinstance(value.op, (ast.Mult, ast.Div)):
        return None
    name = written(node.targets[0])
    if written(value.left) == name:
        return node.targets[0], value.right
    if isinstance(value.op, ast.Mult) and written(value.right) == name:
        return node.targets[0], value.left
    return None


def _counter(code: Syntax, node: ast.stmt, factor: ast.expr, left: int = 6) -> str | None:
    """The counter that a factor depends on: a loop's variable, a parameter or an attribute with a counter's name."""
    turning = {n.id for up in code.loops(node) if isinstance(up, ast.For) for n in below(up.target)
               if isinstance(n, ast.Name)}  # fmt: skip
    function = code.function(node)
    given = set(parameters(function)) if function is not None else set()
    looked_up = {id(n) for key in _keys(factor) for n in below(key)}
    for n in below(factor):
        if id(n) in looked_up:
            continue
        if isinstance(n, ast.Name) and _COUNTER.match(n.id) and (n.id in turning or n.id in given):
            return n.id
        if isinstance(n, ast.Attribute) and _COUNTER.match(n.attr) and isinstance(n.ctx, ast.Load):
            return written(n)
        if isinstance(n, ast.Name) and n.id not in turning and n.id not in given:
            made = code.assigned(n)
            follow = isinstance(made, (ast.BinOp, ast.Call)) and made is not factor
            inner = _counter(code, node, made, left - 1) if follow and made is not None and left > 0 else None
            if inner is not None:
                return inner
    return None


def _keys(factor: ast.expr) -> Iterator[ast.expr]:
    """What a table of factors is asked for (`drops[step]`, `drops.get(step, 1.0)`): each stands for its one moment."""
    for n in below(factor):
        if isinstance(n, ast.Subscript):
            yield n.slice
        elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "get":
            yield from n.args


def _outlives(code: Syntax, node: ast.stmt, rate: ast.expr) -> bool:
    """Whether the rate is still there at the next turn, and nothing sets it back to the initial one before."""
    function = code.function(node)
    if isinstance(rate, ast.Name):
        loops = code.loops(node)
        if not loops or (function is not None and rate.id in _targets(loops[-1])):
            return False
        around: ast.AST = loops[-1]
    else:
        if function is not None and function.name in ("__init__", "__post_init__", "main"):
            return bool(code.loops(node)) and not _set_back(code.loops(node)[-1], node, rate)
        around = function or code.file.tree
    return not _set_back(around, node, rate)


def _targets(loop: ast.AST) -> set[str]:
    return {n.id for n in below(loop.target) if isinstance(n, ast.Name)} if isinstance(loop, ast.For) else set()


def _set_back(around: ast.AST, node: ast.stmt, rate: ast.expr) -> bool:
    """Whether the rate is assigned from something else in the same loop or function."""
    name = written(rate)
    for other in below(around):
        if isinstance(other, ast.Assign) and other is not node and any(written(t) == name for t in other.targets):
            return True
        if other is not around and isinstance(other, (*FunctionNode, *Loops)) and other.lineno > node.lineno:
            break
    return False


def _finding(code: Syntax, node: ast.Assign | ast.AugAssign, rate: ast.expr, counter: str) -> Finding:
    name = written(rate)
    return RULE.finding(
        f"{code.file.segment(node)} at {code.at(node)} multiplies the current {name} by a factor that depends on "
        f"{counter}: the factors of all steps so far multiply up",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "compounds", "counter": counter, "rate": name},
    )
