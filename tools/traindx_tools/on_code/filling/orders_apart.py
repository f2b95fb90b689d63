"""Parts of one sample or batch that are taken by an index, and by the same index in another order.

`x[np.sort(i)], y[i]`: both are the rows that were asked for, one in ascending order and one as drawn. Told where a
function hands both out together, and neither is put back (`x[np.argsort(...)]`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from traindx_tools.on_code.lookup import Body, Lookup, returned
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, written
from traindx_tools.program.loading import Apart

_ORDERS = {"sort": "sorted", "sorted": "sorted", "unique": "sorted", "flip": "reversed", "flipud": "reversed",
           "reversed": "reversed", "permutation": "drawn anew", "permuted": "drawn anew", "roll": "rolled",
           "shuffled": "drawn anew"}
_TAKES = frozenset({"take", "index_select", "gather", "reindex"})
_MOST = 60


class _Taken(NamedTuple):
    """What a part is taken by. `order`: how the index was put into another order, "" for none."""

    rows: str
    order: str
    at: ast.expr


def orders_apart(look: Lookup) -> Iterator[Apart]:
    """Every pair of parts of one outcome, of which one is in another order."""
    for code in look.codes:
        if not any(word in code.file.text for word in _ORDERS):
            continue
        for body in code.of(ast.FunctionDef):
            yields = [y.value for y in code.inside(body, ast.Yield) if y.value is not None]
            for outcome in (*returned(body), *yields):
                yield from _within(code, body, outcome)


def _within(code: Syntax, body: Body, outcome: ast.expr) -> Iterator[Apart]:
    items = outcome.elts if isinstance(outcome, (ast.Tuple, ast.List)) else \
        outcome.values if isinstance(outcome, ast.Dict) else ()
    each = [_taken(code, body, item) or [] for item in items]
    taken = [found[0] for found in each if len(found) == 1]
    plain = {_base(t.at) for t in taken if not t.order}
    for mine in (t for t in taken if t.order and _base(t.at) not in plain):
        for theirs in taken:
            if not theirs.order and mine.rows == theirs.rows:
                yield Apart(written(theirs.at), written(mine.at), code.spot(mine.at), mine.order, reordered=True)
                return


def _base(taken: ast.expr) -> str:
    """What rows are taken of: the same in two orders is a pair that is meant."""
    return written(taken.value if isinstance(taken, ast.Subscript) else taken.func if isinstance(taken, ast.Call) else
                   taken)


def _taken(code: Syntax, body: Body, item: ast.expr) -> list[_Taken] | None:
    """By what the rows of a part are taken; None where too much is done to it."""
    todo, done, found = [item], 0, []
    while todo:
        node = todo.pop()
        done += 1
        if done > _MOST:
            return None
        for inner in below(node):
            index = _index(inner)
            if isinstance(index, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) and isinstance(inner, ast.expr):
                found.append(_by(code, index, inner))
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
                made = code.assigned(inner)
                if made is not None and body in code.above(made) and not _is_index(inner, found):
                    todo.append(made)
    return list({(t.rows, t.order): t for t in found}.values())


def _index(node: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return node.slice
    taking = isinstance(node, ast.Call) and last_name(node.func) in _TAKES
    return node.args[0] if isinstance(node, ast.Call) and taking and node.args else None


def _is_index(name: ast.Name, found: list[_Taken]) -> bool:
    """Whether a name is a part of what something is taken by, which was looked at."""
    return any(name is n for t in found for n in ast.walk(t.at.slice if isinstance(t.at, ast.Subscript) else t.at))


def _by(code: Syntax, index: ast.expr, taken: ast.expr) -> _Taken:
    """An index by what it was made of: names that stand for one expression are followed."""
    order = ""
    for _ in range(6):
        made = code.assigned(index) if isinstance(index, ast.Name) else None
        if isinstance(made, (ast.Call, ast.Name, ast.Subscript)):
            index = made
        if isinstance(index, ast.Call) and last_name(index.func) in _ORDERS and not _is_method(code, index):
            if order or not index.args:
                return _Taken(written(index), order, taken)
            order, index = _ORDERS[last_name(index.func)], index.args[0]
        elif isinstance(index, ast.Subscript) and _is_reversed(index):
            order, index = "reversed", index.value
        elif made is None:
            break
    return _Taken(written(index), order, taken)


def _is_method(code: Syntax, call: ast.Call) -> bool:
    """Whether it is a method of the index itself, such as a list's sort, or of something that is not known."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    return owner is not None and not code.qualified(owner) and last_name(call.func) not in ("permutation", "permuted")


def _is_reversed(node: ast.Subscript) -> bool:
    cut = node.slice
    step = cut.step if isinstance(cut, ast.Slice) and cut.lower is None and cut.upper is None else None
    return isinstance(step, ast.UnaryOp) and isinstance(step.op, ast.USub)
