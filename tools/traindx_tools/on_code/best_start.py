"""A best value so far that begins where no value of the metric can beat it: 0 for a loss, infinity for an accuracy."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from traindx_tools.on_code.metric_direction import Direction
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, written

_INFINITE = re.compile(r"(?P<sign>-?)\s*(?:float\(['\"](?P<inner>[-+]?)inf(inity)?['\"]\)"
                       r"|(?:math|np|numpy|torch|jnp)\.inf)")  # fmt: skip
_ABOVE_ALL = 1e3
"""No accuracy, precision or overlap reaches it, as a share or in percent."""


@dataclass(frozen=True)
class Start:
    """The comparison that never holds, the first value of the best, and which way the metric improves."""

    test: ast.Compare
    metric: ast.expr
    begun: ast.expr
    better: Direction


def unreachable(code: Syntax, direction: Callable[[ast.expr], Direction | None]) -> Iterator[Start]:
    """Comparisons `if metric < best: best = metric` (or `>`) whose best begins beyond every value of the metric."""
    for branch in code.of(ast.If):
        for test in (n for n in below(branch.test) if isinstance(n, ast.Compare) and len(n.ops) == 1):
            found = _sides(branch, test)
            if found is None:
                continue
            metric, best, looks_for = found
            begun = _begun(code, branch, best)
            if begun is None or not _beyond(code, begun, looks_for) or direction(metric) != looks_for:
                continue
            yield Start(test, metric, begun, looks_for)


def _sides(branch: ast.If, test: ast.Compare) -> tuple[ast.expr, ast.expr, Direction] | None:
    """(metric, best, what the comparison looks for), where the branch puts the metric in the best's place."""
    less, more = isinstance(test.ops[0], (ast.Lt, ast.LtE)), isinstance(test.ops[0], (ast.Gt, ast.GtE))
    if not less and not more:
        return None
    for metric, best, smaller in ((test.left, test.comparators[0], less), (test.comparators[0], test.left, more)):
        kept = [s for s in branch.body if isinstance(s, ast.Assign) and written(s.targets[0]) == written(best)]
        if isinstance(best, (ast.Name, ast.Attribute)) and len(kept) == 1 and written(kept[0].value) == written(metric):
            return metric, best, "min" if smaller else "max"
    return None


def _begun(code: Syntax, branch: ast.If, best: ast.expr) -> ast.expr | None:
    """The only value that the best has outside of the branch."""
    inside = {id(n) for s in branch.body for n in below(s)}
    others = [value for statement, value in code.bindings(best) if id(statement) not in inside]
    return others[0] if len(others) == 1 else None


def _beyond(code: Syntax, begun: ast.expr, looks_for: Direction) -> bool:
    infinite = _INFINITE.fullmatch(written(begun))
    if infinite is not None:
        negative = (infinite["sign"] == "-") != (infinite["inner"] == "-")
        number: float | None = -math.inf if negative else math.inf
    else:
        number = code.number(begun)
    if number is None:
        return False
    return number <= 0 if looks_for == "min" else number >= _ABOVE_ALL
