"""Rows at which an expression of several fields is 0 or negative where the code divides by it, or takes its logarithm.

`a / (b - c)` is infinite where two columns agree, `log(x * y - z)` is NaN where z is the larger one: no column by
itself shows it. The expression is computed on the rows (`code_expressions.py`) and held against the poles of the
function. A comparison in the code that says the same of these rows as of all others guards nothing; one that tells
them apart, or that cannot be computed, is taken for a guard, and so is any bound or filter of one of the fields.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from traindx_tools.on_data.code_expressions import Expressions, Pair, is_nothing
from traindx_tools.on_data.code_fields import Fields, called
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.shard import Shard

MOST_BAD = 0.3
"""Share of the rows of all files: of more the expression was not read rightly, or the code does not run at all."""
MOST_USES = 40
MOST_PLACES = 2**24
"""Numbers of one field of a file on which an expression is computed."""
_CAUGHT = frozenset({"ZeroDivisionError", "ValueError", "FloatingPointError", "ArithmeticError", "Exception"})
_FILLS = frozenset({"dropna", "fillna", "notna", "isna", "isnull", "notnull", "drop_nans", "fill_nan", "is_nan",
                    "nanmean", "nansum"})
_INFINITE, _REPLACES = frozenset({"isinf", "is_infinite"}), frozenset({"replace", "where", "mask"})
_REDUCES = frozenset({"max", "min", "mean", "std", "sum"})
"""Called without an argument they are statistics, and bound nothing."""


@dataclass(frozen=True, eq=False)
class Several:
    """What a line does with an expression of fields."""

    names: tuple[str, ...]
    kind: str
    inner: ast.expr
    text: str
    file: str
    line: int
    of: Expressions
    bad: Callable[[Array], Array]
    division: bool

    def at_pole(self, values: Mapping[str, Array], rows: int) -> Array | None:
        """bool shape (rows,): the rows at a pole of which all fields are finite; None where it cannot be computed."""
        with np.errstate(all="ignore"):
            made = self.of.value(self.inner, values)
            if made is None or made[0].shape not in ((rows,), ()):
                return None
            hit = is_nothing(made) if self.division else np.asarray(self.bad(made[0]))
        finite = np.logical_and.reduce([np.isfinite(values[n]) for n in self.names])
        return np.asarray(np.broadcast_to(hit, rows) & finite & np.isfinite(made[0]))

    @property
    def told(self) -> str:
        """The expression as the code has it, or what the name in its place stands for."""
        node: ast.expr = self.inner
        while isinstance(node, ast.Name) and (inner := self.of.fields.stands_for(node.id)) is not None:
            node = inner
        text = ast.unparse(node)
        return text if len(text) <= 60 else f"{text[:57]}..."


def uses_of_several(path: Path, fields: Fields, taken: Sequence[tuple[ast.expr, str, Callable[[Array], Array],
                                                                      ast.expr]], changed: Mapping[str, int],
                    division: str) -> Iterator[Several]:
    """The uses of expressions that no single field with numbers is. `taken`: node, kind, for which values, inner."""
    of = Expressions(fields)
    made = 0
    for node, kind, bad, inner in taken:
        if made == MOST_USES or fields.affine(inner) is not None:
            continue
        names = tuple(sorted(of.names(inner)))
        if not names or any(node.lineno > changed.get(n, node.lineno) for n in names):
            continue
        if _caught(fields.tree, node):
            continue
        made += 1
        text = ast.unparse(node)
        yield Several(names, kind, inner, text if len(text) <= 60 else f"{text[:57]}...", path.name, node.lineno, of,
                      bad, kind == division)


def _caught(tree: ast.AST, node: ast.expr) -> bool:
    """Whether what goes wrong there is caught, or rows that are not finite are filled or dropped behind it."""
    for other in ast.walk(tree):
        if isinstance(other, ast.Try) and other.lineno <= node.lineno <= (other.body[-1].end_lineno or 0):
            said = " ".join(ast.unparse(h.type) if h.type is not None else "Exception" for h in other.handlers)
            if any(c in said for c in _CAUGHT):
                return True
        if isinstance(other, ast.Call):
            name = called(other)
            if name in _INFINITE or (name in _FILLS and other.lineno >= node.lineno):
                return True
            if name in _REPLACES and "inf" in ast.unparse(other):
                return True
    return False


def found_in(shards: Sequence[Shard], use: Several, files: Sequence[Fields], heed: frozenset[str]
             ) -> Iterator[tuple[Shard, Array, int]]:
    """Each shard with rows at a pole, those rows, and how many other shards hold none."""
    having, bad, every = [], [], []
    for shard in shards:
        values = values_of(shard, use.names)
        size = len(next(iter(values.values()))) if values else 0
        hit = use.at_pole(values, size) if values is not None else None
        if values is not None and hit is not None:
            having.append(shard)
            bad.append(hit)
            every.append(values)
    count = sum(int(b.sum()) for b in bad)
    if not count or count > MOST_BAD * sum(map(len, bad)) or is_guarded(use, files, heed, every, bad):
        return
    clean = sum(not b.any() for b in bad)
    for shard, hit in zip(having, bad, strict=True):
        if hit.any():
            yield shard, np.flatnonzero(hit.reshape(shard.rows, -1).any(axis=1)), clean


def values_of(shard: Shard, names: Sequence[str]) -> dict[str, Array] | None:
    """float64 shape (rows,) by field, or (rows x places,) where a row of some of them is so many numbers.

    None where one of them is neither, or rows have several lengths.
    """
    columns = [shard.columns.get(n) for n in names]
    shapes = {c.row_shape for c in columns if c is not None and c.row_shape}
    places = next(iter(shapes), (1,))
    if len(shapes) > 1 or len(places) > 1 or shard.rows * places[0] > MOST_PLACES:
        return None
    out = {}
    for name, column in zip(names, columns, strict=True):
        if column is None or column.kind != "number" or column.rows != shard.rows or (
                column.values.dtype.kind not in "iuf"):
            return None
        values = np.asarray(column.values, np.float64)
        out[name] = values.reshape(-1) if column.row_shape else np.repeat(values, places[0])
    return out


def is_guarded(use: Several, files: Sequence[Fields], heed: frozenset[str], values: Sequence[Mapping[str, Array]],
               bad: Sequence[Array]) -> bool:
    """Whether the code bounds, filters or compares what the expression is made of, so that it tells the rows apart."""
    for fields in files:
        of = use.of if fields is use.of.fields else Expressions(fields)
        for node in ast.walk(fields.tree):
            if isinstance(node, ast.Compare):
                found = _separates(node, of, use, values, bad)
            elif isinstance(node, ast.Call):
                found = called(node) in heed and _bounds(node, of, use)
            elif isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert)):
                found = not isinstance(node.test, ast.Compare) and _named(node.test, of, use)
            else:
                found = _is_query(node, use)
            if found:
                return True
    return False


def _is_query(node: ast.AST, use: Several) -> bool:
    """Whether a text compares one of the fields."""
    said = node.value if isinstance(node, ast.Constant) else None
    return isinstance(said, str) and any(c in said for c in "<>=!") and any(
        re.search(rf"\b{re.escape(n)}\b", said) for n in use.names)


def _bounds(node: ast.Call, of: Expressions, use: Several) -> bool:
    if called(node) in _REDUCES and len(node.args) < 2:
        return False
    if any(inner is node for inner in ast.walk(use.inner)) and of.value(node, {n: np.ones(1) for n in use.names}):
        return False  # a part of the expression, and computed with it
    return _named(node, of, use) and not _is_behind(node, of, use)


def _is_behind(node: ast.AST, of: Expressions, use: Several, depth: int = 0) -> bool:
    """Whether something is made of the result: what is not finite then stays so, whatever bounds it."""
    for inner in ast.walk(node):
        if inner is use.inner:
            return True
        if isinstance(inner, ast.Name) and depth < 4:
            stands = of.fields.stands_for(inner.id)
            if stands is not None and stands is not node and _is_behind(stands, of, use, depth + 1):
                return True
    return False


def _named(node: ast.AST, of: Expressions, use: Several) -> bool:
    """Whether something is made of one of the fields of the expression."""
    return any(set(of.fields.of(n)) & set(use.names) or (isinstance(n, ast.Name) and of.names(n) & set(use.names))
               for n in ast.walk(node))


def _separates(node: ast.Compare, of: Expressions, use: Several, values: Sequence[Mapping[str, Array]],
               bad: Sequence[Array]) -> bool:
    """Whether a comparison says of the rows at the pole what it says of hardly another one."""
    if not _named(node, of, use):
        return False
    inside: list[Array] = []
    outside: list[Array] = []
    for some, hit in zip(values, bad, strict=True):
        held = of.compared(node, some)
        if held is None or held.shape not in ((), hit.shape):
            return True
        every = np.broadcast_to(held, hit.shape)
        inside.append(every[hit])
        outside.append(every[~hit])
    there, rest = np.concatenate(inside), float(np.concatenate(outside).mean())
    return bool(np.abs(there.mean() - rest) > 0.5)


def pair_of(use: Several, shard: Shard) -> Pair | None:
    """The values of the expression in a shard, of rows of many numbers where they are at the pole first."""
    values = values_of(shard, use.names)
    made = None if values is None else use.of.value(use.inner, values)
    if values is None or made is None:
        return None
    size = len(next(iter(values.values())))
    hit = use.at_pole(values, size) if size > shard.rows else None
    if hit is None:
        return made
    first = hit.reshape(shard.rows, -1).argmax(axis=1) + np.arange(shard.rows) * (size // shard.rows)
    value, weight = (np.broadcast_to(part, size)[first] for part in made)
    return value, weight


def fields_at(use: Several, shard: Shard, row: int) -> dict[str, float]:
    """The numbers of a row at the pole, of rows of many numbers those of its first place there."""
    values = values_of(shard, use.names) or {}
    size = len(next(iter(values.values()), ())) // max(1, shard.rows)
    own = {n: v[row * size: (row + 1) * size] for n, v in values.items()}
    hit = use.at_pole(own, size)
    at = 0 if hit is None else int(hit.argmax())
    return {n: float(v[at]) for n, v in own.items()}
