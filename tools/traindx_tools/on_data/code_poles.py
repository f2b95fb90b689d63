"""Functions that the code takes of fields at whose values they are not finite, beside the values that the data hold.

Nothing is run: `code_fields.py` says which field an expression is, and what it makes of it with numbers (`log1p(x)`,
`log(x + 1)`, `1 / (5 - x)`, `sqrt(1 - x)`). What the code does about bad values
is not followed: wherever it names the field in a comparison, in a text with more than the name (a query), or under a
call that bounds, fills or filters, or looks for finite values at all, it is believed to have seen to it. So are lines
behind one that gives the field other values.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from traindx_tools.finding import Finding
from traindx_tools.on_data.code_fields import Affine, Fields, argument, called
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.expression_poles import found_in, uses_of_several
from traindx_tools.on_data.row_totals import totals_of
from traindx_tools.on_data.rules.d175_at_a_pole import finding_of, finding_of_several, finding_of_total
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet

LOG, DOMAIN, DIVISION = "log", "domain", "division"
"""What goes wrong: a logarithm of nothing, a value outside of the domain, a division by zero."""
_AT_LEAST: tuple[tuple[str, str, Callable[[Array], Array]], ...] = (
    ("log log2 log10 ln boxcox", LOG, lambda x: x <= 0),
    ("log1p", LOG, lambda x: x <= -1),
    ("logit", LOG, lambda x: (x <= 0) | (x >= 1)),
    ("sqrt", DOMAIN, lambda x: x < 0),
    ("arccos acos arcsin asin", DOMAIN, lambda x: np.abs(x) > 1),
    ("arctanh atanh", DOMAIN, lambda x: np.abs(x) >= 1),
    ("arccosh acosh", DOMAIN, lambda x: x < 1),
    ("rsqrt", DIVISION, lambda x: x <= 0),
    ("reciprocal", DIVISION, lambda x: x == 0),
)
POLES = {name: (kind, bad) for names, kind, bad in _AT_LEAST for name in names.split()}
"""By function: what goes wrong, and for which values."""
_APPLIED = frozenset({"apply", "map", "transform", "applymap", "pipe"})
_HEED = frozenset({
    "clip", "clamp", "clamp_min", "clip_by_value", "maximum", "max", "where", "filter", "replace", "query", "mask",
    "masked_fill", "fillna", "dropna", "drop", "nan_to_num", "isfinite", "is_finite", "isinf", "isnan", "abs",
    "divide_no_nan", "cond", "select", "boolean_mask", "between"})
_WHOLE = frozenset({"nan_to_num", "isfinite", "is_finite", "divide_no_nan"})
"""Calls that see to all values, whatever their field is."""
MOST_CODE = 2 * 2**20


@dataclass(frozen=True)
class Use:
    """What a line does with a field."""

    field: str
    kind: str
    bad: Callable[[Array], Array]
    """For which values of the field."""
    text: str
    file: str
    line: int


def at_poles(sets: Sequence[DataSet], code: Sequence[Path]) -> Iterator[Finding]:
    """A finding for each shard and field with rows at a pole of what the code does with it."""
    yield from _of_totals(sets, code)
    known = {n for d in sets for s in d.shards for n, c in s.columns.items() if _is_single(s, n)}
    rows = {n for d in sets for s in d.shards for n, c in s.columns.items() if len(c.row_shape) == 1}
    yield from _of_several(sets, _files(code, known | rows) if known | rows else ())
    if not known:
        return
    done: set[tuple[str, str]] = set()
    files = _files(code, known)
    for use in uses_of(files):
        for data in sets:
            having = [s for s in data.shards if use.field in s.columns and _is_single(s, use.field)]
            bad = [np.flatnonzero(_at_pole(np.asarray(s.columns[use.field].values, np.float64), use))
                   for s in having]
            clean = sum(not len(b) for b in bad)
            for shard, where in zip(having, bad, strict=True):
                if len(where) and (shard.name, use.field) not in done:
                    done.add((shard.name, use.field))
                    yield finding_of(shard, use.field, where, use.text, use.kind, f"{use.file}:{use.line}", clean)


def _of_several(sets: Sequence[DataSet], files: Sequence[tuple[Path, Fields]]) -> Iterator[Finding]:
    """The same of expressions of several fields, one finding for a shard and an expression."""
    done: set[tuple[str, str]] = set()
    every = [f for _, f in files]
    for path, fields in files:
        taken = [(node, kind, bad, inner) for node in ast.walk(fields.tree)
                 for kind, bad, inner in _taken(node, fields) if isinstance(node, ast.expr) and inner is not None]
        for use in uses_of_several(path, fields, taken, _changed(fields), DIVISION):
            for data in sets:
                for shard, where, clean in found_in(data.shards, use, every, _HEED):
                    if (shard.name, use.told) not in done:
                        done.add((shard.name, use.told))
                        yield finding_of_several(shard, use, where, clean)


def _of_totals(sets: Sequence[DataSet], code: Sequence[Path]) -> Iterator[Finding]:
    """The same of what the code divides a row of a matrix by."""
    known = {n for d in sets for s in d.shards for n in s.columns}
    for total in totals_of(sets, _files(code, known)) if known else ():
        yield finding_of_total(total.matrix.shard, total.matrix.name, np.flatnonzero(total.values == 0),
                               len(total.values), (total.text, total.use, f"{total.file}:{total.line}"))


def _is_single(shard: Shard, name: str) -> bool:
    column = shard.columns[name]
    return column.kind == "number" and not column.row_shape and column.values.dtype.kind in "iuf" and (
        column.rows == shard.rows)


def _at_pole(values: Array, use: Use) -> Array:
    with np.errstate(invalid="ignore"):
        return np.asarray(use.bad(values))


def _files(code: Sequence[Path], known: set[str]) -> list[tuple[Path, Fields]]:
    """The files of code that can be read; none where some call sees to all values."""
    files: list[tuple[Path, Fields]] = []
    for path in code:
        try:
            if path.suffix == ".py" and path.stat().st_size <= MOST_CODE:
                text = path.read_text(encoding="utf-8", errors="replace")
                files.append((path, Fields(ast.parse(text), frozenset(known), text)))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    if any(isinstance(n, ast.Call) and called(n) in _WHOLE for _, f in files for n in ast.walk(f.tree)):
        return []
    return files


def uses_of(files: Sequence[tuple[Path, Fields]]) -> list[Use]:
    """The uses of single fields, without those that some code pays heed to."""
    heeded = {h for _, fields in files for h in _heeded(fields)}
    return [u for path, fields in files for u in _uses(path, fields) if u.field not in heeded]


def _heeded(fields: Fields) -> Iterator[str]:
    """Fields that a comparison, a bound or a filter names, also through the name that they were given."""
    for node in ast.walk(fields.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in fields.known:
            yield from (f for f in fields.known if f in node.value and any(c in node.value for c in "<>=!"))
        if isinstance(node, (ast.Compare, ast.Subscript, ast.AugAssign)) or (
                isinstance(node, ast.Call) and called(node) in _HEED):
            inner = [node.slice] if isinstance(node, ast.Subscript) else [node]
            yield from (f for part in inner for n in ast.walk(part) for f in fields.of(n))


def _uses(path: Path, fields: Fields) -> Iterator[Use]:
    changed = _changed(fields)
    for node in ast.walk(fields.tree):
        for kind, bad, inner in _taken(node, fields):
            of = fields.affine(inner)
            assert isinstance(node, ast.expr)
            for name in of.fields if of is not None else ():
                if of is not None and node.lineno <= changed.get(name, node.lineno):
                    text = ast.unparse(node)
                    yield Use(name, kind, _moved(bad, of), text if len(text) <= 60 else f"{text[:57]}...", path.name,
                              node.lineno)


def _changed(fields: Fields) -> dict[str, int]:
    """Where each field is first given other values."""
    changed: dict[str, int] = {}
    for name, line in fields.changed():
        changed[name] = min(line, changed.get(name, line))
    return changed


def _moved(bad: Callable[[Array], Array], of: Affine) -> Callable[[Array], Array]:
    return lambda x: bad(of.scale * x + of.shift)


def _taken(node: ast.AST, fields: Fields) -> Iterator[tuple[str, Callable[[Array], Array], ast.expr | None]]:
    """What goes wrong, for which values, and the expression that a function with poles takes."""
    if isinstance(node, ast.Call):
        if called(node) in POLES:
            yield (*POLES[called(node)], argument(node))
        elif called(node) in _APPLIED and isinstance(node.func, ast.Attribute):
            for name in [a.attr if isinstance(a, ast.Attribute) else getattr(a, "id", "") for a in node.args[:1]]:
                if name in POLES:
                    yield (*POLES[name], node.func.value)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        yield DIVISION, lambda x: x == 0, node.right
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        power = fields.number(node.right)
        if power is not None and power < 0:
            yield DIVISION, lambda x: x == 0, node.left
        elif power is not None and power != int(power):
            yield DOMAIN, lambda x: x < 0, node.left
