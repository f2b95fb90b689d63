"""Comparisons of a metric with its best value so far, written by hand, that go the wrong way."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.metric_direction import Direction, by_name, by_value, same
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, written

_BEST = re.compile(r"best|min(imum)?(_|$)|lowest|highest|(^|_)max(_|$)", re.IGNORECASE)
_WORST = re.compile(r"worst|hard|attack|advers|perturb|pgd|fool|peak|outlier|anomal", re.IGNORECASE)
_OTHER_WAY: dict[Direction, re.Pattern[str]] = {
    "min": re.compile(r"(^|_)max(_|$)|maximum|highest", re.IGNORECASE),
    "max": re.compile(r"(^|_)min(_|$)|minimum|lowest", re.IGNORECASE),
}
"""Names of a record that is meant as it is, for a metric that falls and for one that rises."""
_SAVES = re.compile(r"save|state_dict|deepcopy|checkpoint|export|dump|best", re.IGNORECASE)
_OPERATORS = {ast.Gt: "max", ast.GtE: "max", ast.Lt: "min", ast.LtE: "min"}
_TURNED = {"max": "min", "min": "max"}


@dataclass(frozen=True)
class Reversed:
    """`node` is the comparison, `better` the metric's own direction, `change` what turns it."""

    node: ast.expr
    metric: str
    better: Direction
    change: Change


def reversed_bests(code: Syntax) -> Iterator[Reversed]:
    """Every comparison in a file that makes the worse value the new best one."""
    if "best" not in code.file.text.lower() and "save" not in code.file.text:
        return
    for node in code.of(ast.Compare):
        sides = _sides(code, node)
        if sides is None:
            continue
        metric, best, takes = sides
        better = by_value(code, metric)
        if better is None or by_name(last_name(_target(best))) not in (None, better):
            continue
        if _meant(code, node, best, better):
            continue
        kept = _kept(code, node, metric, best)
        if kept is None or (takes if kept else _TURNED[takes]) == better:
            continue
        yield Reversed(node, written(metric), better, _turned(code, node, metric, best, better))


def _sides(code: Syntax, node: ast.Compare) -> tuple[ast.expr, ast.expr, Direction] | None:
    """The metric, the record, and which the comparison takes: the larger ("max") or the smaller."""
    if len(node.ops) != 1 or type(node.ops[0]) not in _OPERATORS:
        return None
    takes: Direction = "max" if _OPERATORS[type(node.ops[0])] == "max" else "min"
    left, right = node.left, node.comparators[0]
    if _is_record(right) and not _is_record(left):
        return left, right, takes
    if _is_record(left) and not _is_record(right):
        return right, left, "min" if takes == "max" else "max"
    return None


def _is_record(node: ast.expr) -> bool:
    return bool(_BEST.search(last_name(_target(node)))) and isinstance(node, (ast.Name, ast.Attribute, ast.Subscript))


def _target(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return ast.Name(node.slice.value, ast.Load())
    return node


def _meant(code: Syntax, node: ast.AST, best: ast.expr, better: Direction) -> bool:
    """Whether the record, the function or the class is named for the worst case."""
    if _OTHER_WAY[better].search(last_name(_target(best))):
        return True
    around = [code.function(node), code.owner(node)]
    return any(_WORST.search(n.name) for n in around if n is not None) or bool(_WORST.search(written(best)))


def _kept(code: Syntax, node: ast.Compare, metric: ast.expr, best: ast.expr) -> bool | None:
    """True where the record is set if the comparison holds, False if it does not; None where neither is seen."""
    up = code.parent(node)
    if isinstance(up, ast.Assign) and up.value is node and len(up.targets) == 1:
        named = last_name(up.targets[0]).lower()
        return True if "best" in named and ("is" in named or "new" in named) else None
    while isinstance(up, ast.BoolOp):
        if isinstance(up.op, ast.And) and any(written(v) != written(node) and isinstance(v, ast.Compare)
                                              and _is_other_metric(code, v, metric) for v in up.values):  # fmt: skip
            return None
        up = code.parent(up)
    if not isinstance(up, ast.If) or not any(n is node for n in below(up.test)):
        return None
    first, second = _sets(code, up.body, metric, best), _sets(code, up.orelse, metric, best)
    if first == second:
        return None
    branch = up.body if first else up.orelse
    text = "\n".join(written(s) for s in branch)
    saved = _SAVES.search(text.replace(written(best), "")) or "best" in written(best).lower()
    return first if saved else None


def _is_other_metric(code: Syntax, node: ast.Compare, metric: ast.expr) -> bool:
    sides = _sides(code, node)
    return sides is not None and written(sides[0]) != written(metric)


def _sets(code: Syntax, block: list[ast.stmt], metric: ast.expr, best: ast.expr) -> bool:
    for statement in block:
        if not isinstance(statement, ast.Assign):
            continue
        for target in statement.targets:
            pairs = [(target, statement.value)]
            if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
                pairs = list(zip(target.elts, statement.value.elts, strict=False))
            if any(written(t) == written(best) and same(v, metric, code) for t, v in pairs):
                return True
    return False


def _turned(code: Syntax, node: ast.Compare, metric: ast.expr, best: ast.expr, better: Direction) -> Change:
    """The comparison the other way, with a first record that any value beats; `max(best, x)` as well."""
    signs = {ast.Gt: "<", ast.GtE: "<=", ast.Lt: ">", ast.LtE: ">="}
    change = Change(code.file, "keep the better value")
    change.replace(node, f"{written(node.left)} {signs[type(node.ops[0])]} {written(node.comparators[0])}")
    bound = [v for _, v in code.bindings(best)]
    starts = [v for v in (*bound, *_at_top(code, best)) if _is_start(code, v)]
    if len(starts) != 1:
        return change.spoil()
    value = starts[0]
    other = 'float("inf")' if better == "min" else '-float("inf")'
    if not (isinstance(value, ast.Constant) and value.value is None):
        change.replace(value, other)
    wrong = "max" if better == "min" else "min"
    for value in bound:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == wrong:
            change.replace(value.func, better)
    return change


def _at_top(code: Syntax, best: ast.expr) -> list[ast.expr]:
    """What a name that is declared global in this function holds at the file's top level."""
    name = last_name(best)
    if not any(isinstance(n, ast.Global) and name in n.names for n in below(code.scope(best))):
        return []
    return [s.value for s in code.file.tree.body if isinstance(s, ast.Assign) and name in map(written, s.targets)]


def _is_start(code: Syntax, value: ast.expr) -> bool:
    """A number, an infinity or None: what a record holds before the first value."""
    return code.number(value) is not None or isinstance(value, ast.Constant) or "inf" in written(value)
