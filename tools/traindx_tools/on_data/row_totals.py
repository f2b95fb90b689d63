"""What the code divides a row of a matrix by: the sum, the largest, the length or the spread of some of its columns.

`size = C[:, spike].sum(1)` is 0 for rows in which none of these columns holds anything, `x.std(1)` and `hi - lo` are 0
for rows of one value, and the row becomes infinite or NaN. The text of the code says which matrix (an array of the
data, a sparse one, columns of a table) and which of its columns; it is read and computed here, nothing is run. What is
not understood is left alone, and so is what any comparison or bound in the code names.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from traindx_tools.on_data.code_fields import CASTS, Fields, argument, called
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet

MOST_BAD = 0.3
"""Share of the rows: of more the expression was not read rightly, or the code does not run at all."""
MOST_VALUES = 2**27
DEPTH = 12
_SAME = CASTS | {"toarray", "todense", "tocsr", "ravel", "reshape", "squeeze", "flatten", "unsqueeze", "view", "float",
                 "clone", "contiguous", "cpu", "to", "numpy", "values", "asfarray", "ascontiguousarray"}
"""Calls that leave the numbers as they are."""
_ALIKE = frozenset({"A", "A1", "values"})
_REDUCES: dict[str, Any] = {"sum": np.sum, "nansum": np.sum, "max": np.max, "amax": np.max, "mean": np.mean,
            "norm": lambda v, axis: np.sqrt((v**2).sum(axis=axis)), "count_nonzero": np.count_nonzero, "min": np.min,
            "amin": np.min, "std": np.ptp, "var": np.ptp, "nanstd": np.ptp, "ptp": np.ptp}
"""What they make of the rows, as far as it is 0 or not: a spread is where the largest and the smallest are one."""
_RANGES = {("max", "min"), ("amax", "amin")}
_HEED = frozenset({"clip", "clamp", "clamp_min", "maximum", "fmax", "where", "nan_to_num", "isfinite", "isinf", "isnan",
                   "divide_no_nan", "masked_fill", "filter_cells", "replace", "errstate"})


@dataclass(frozen=True, eq=False)
class Matrix:
    """Rows of numbers. `shard`: that holds them; `values`: float64 shape (rows, columns), or sums of chosen columns."""

    shard: Shard
    name: str
    values: Array


@dataclass(frozen=True, eq=False)
class Total:
    """One number of each row that the code divides by."""

    matrix: Matrix
    values: Array
    text: str
    use: str
    file: str
    line: int


def totals_of(sets: Sequence[DataSet], files: Sequence[tuple[Path, Fields]]) -> Iterator[Total]:
    """The totals that the code divides by and that no other line heeds, with rows where they are 0."""
    shards = [s for d in sets for s in d.shards]
    for path, fields in files:
        seen: set[str] = set()
        reader = _Reader(fields, shards)
        for node, divisor in _divisions(fields.tree):
            text = ast.unparse(reader.reduction(divisor) or reader.plain(divisor) or divisor)
            if text in seen or _heeded(files, reader.names(divisor)):
                continue
            use = ast.unparse(node)
            every = list(reader.reduced_in_each(divisor))
            for matrix, values in every if _share_of_zero(every) <= MOST_BAD else ():
                seen.add(text)
                if (values == 0).any():
                    yield Total(matrix, values, text, use if len(use) <= 60 else f"{use[:57]}...", path.name,
                                node.lineno)


def _share_of_zero(every: Sequence[tuple[Matrix, Array]]) -> float:
    return sum(int((v == 0).sum()) for _, v in every) / max(1, sum(len(v) for _, v in every))


def _divisions(tree: ast.AST) -> Iterator[tuple[ast.expr | ast.AugAssign, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            yield node, node.right
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
            yield node, node.value
        elif isinstance(node, ast.Call) and called(node) in ("divide", "true_divide", "div") and node.args:
            yield node, node.args[-1]
        elif isinstance(node, ast.Call) and called(node) in ("log", "log2", "log10", "reciprocal"):
            inner = argument(node)
            if inner is not None:
                yield node, inner


def _heeded(files: Sequence[tuple[Path, Fields]], names: frozenset[str]) -> bool:
    """Whether a comparison, a bound or a filter names what the total is kept as."""
    for _, fields in files:
        for node in ast.walk(fields.tree):
            if isinstance(node, ast.Compare) or (isinstance(node, ast.Call) and called(node) in _HEED):
                if any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(node)):
                    return True
                if isinstance(node, ast.Compare) and any(isinstance(n, ast.Call) and called(n) in _REDUCES
                                                         for n in ast.walk(node)):
                    return True
    return False


@dataclass(frozen=True, eq=False)
class _Reader:
    """Expressions of the code as numbers of the data."""

    fields: Fields
    shards: Sequence[Shard]
    only: Shard | None = None
    """Of several files with a field of one name, the one that is read."""

    def plain(self, node: ast.AST | None, depth: int = 0) -> ast.AST | None:
        """An expression without casts, changes of shape and names that stand for it."""
        while node is not None and depth < DEPTH:
            depth += 1
            if isinstance(node, ast.Call) and called(node) in _SAME:
                node = self._inner(node)
            elif (isinstance(node, ast.Attribute) and node.attr in _ALIKE) or (
                    isinstance(node, ast.Subscript) and _only_adds_axes(node.slice)):
                node = node.value
            elif isinstance(node, ast.Name) and self.fields.stands_for(node.id) is not None:
                node = self.fields.stands_for(node.id)
            else:
                return node
        return node

    def _inner(self, node: ast.Call) -> ast.expr | None:
        root: ast.AST = node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        method = not (isinstance(root, ast.Name) and self.fields.is_module(root.id))
        if method and isinstance(node.func, ast.Attribute):
            return node.func.value
        return node.args[0] if node.args else None

    def names(self, node: ast.AST | None) -> frozenset[str]:
        """The names under which a total is kept on the way."""
        found: set[str] = set()
        for _ in range(DEPTH):
            if isinstance(node, ast.Name):
                found.add(node.id)
                node = self.fields.stands_for(node.id)
            elif isinstance(node, ast.Call) and called(node) in _SAME:
                node = self._inner(node)
            elif isinstance(node, (ast.Attribute, ast.Subscript)):
                node = node.value
            else:
                break
        return frozenset(found)

    def reduction(self, node: ast.AST | None) -> ast.Call | None:
        """The call that makes one number of each row."""
        plain = self.plain(node)
        return plain if isinstance(plain, ast.Call) and called(plain) in _REDUCES and _along_rows(plain) else None

    def reduced_in_each(self, node: ast.AST | None) -> Iterator[tuple[Matrix, Array]]:
        """The numbers of the rows, and what they are made of; of each file that has such a field."""
        found = self.reduced(node)
        if found is not None:
            yield found
        for shard in self.shards if found is None else ():
            of_one = replace(self, only=shard).reduced(node)
            if of_one is not None and of_one[0].shard is shard:
                yield of_one

    def reduced(self, node: ast.AST | None) -> tuple[Matrix, Array] | None:
        """The numbers of the rows, and what they are made of."""
        plain = self.plain(node)
        if isinstance(plain, ast.BinOp) and isinstance(plain.op, ast.Sub):
            high, low = self.reduction(plain.left), self.reduction(plain.right)
            if high is None or low is None or (called(high), called(low)) not in _RANGES or (
                    ast.dump(high.func).replace(called(high), "") != ast.dump(low.func).replace(called(low), "")):
                return None
            of_high, of_low = self.reduced(high), self.reduced(low)
            return None if of_high is None or of_low is None else (of_high[0], of_high[1] - of_low[1])
        call = self.reduction(node)
        if call is None or isinstance(call.func, ast.Name):
            return None
        matrix = self.matrix(self._inner(call))
        return None if matrix is None else (matrix, np.asarray(_REDUCES[called(call)](matrix.values, axis=1)))

    def matrix(self, node: ast.AST | None, depth: int = 0) -> Matrix | None:
        """A matrix of the data, perhaps some of its columns."""
        node = self.plain(node)
        if node is None or depth > DEPTH:
            return None
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == 2 and (
                _is_everything(node.slice.elts[0])):
            inner = self.matrix(node.value, depth + 1)
            chosen = self.chosen(node.slice.elts[1], inner.values.shape[1]) if inner is not None else None
            return None if inner is None or chosen is None else Matrix(inner.shard, inner.name, inner.values[:, chosen])
        if isinstance(node, ast.Call) and called(node) in ("load_npz", "load") and node.args:
            return self._loaded(node)
        named = self.fields.of(node)
        return self._fields(named) if named else None

    def _loaded(self, node: ast.Call) -> Matrix | None:
        """A file that holds one matrix, sparse or not."""
        shard = self._of_file(node.args[0])
        if shard is None:
            return None
        if called(node) == "load_npz":
            return _sparse(shard)
        columns = list(shard.columns.values())
        one = columns[0] if len(columns) == 1 else None
        return Matrix(shard, one.name, np.asarray(one.values, np.float64)) if (
            one is not None and one.kind == "number" and len(one.row_shape) == 1) else None

    def _of_file(self, node: ast.AST) -> Shard | None:
        said = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        found = [s for s in self.shards if said and os.path.basename(s.name) == os.path.basename(said[-1])]
        return found[0] if len(found) == 1 else None

    def _fields(self, names: Sequence[str]) -> Matrix | None:
        """Several columns of one table, or an array of that name."""
        having = [s for s in (self.shards if self.only is None else [self.only]) if all(
            n in s.columns and s.columns[n].rows == s.rows and s.columns[n].kind == "number"
            and s.columns[n].values.dtype.kind in "iufb" for n in names)]
        widths = {len(s.columns[n].row_shape) for s in having for n in names}
        if len(having) != 1 or len(widths) != 1 or having[0].columns[names[0]].values.size > MOST_VALUES:
            return None
        shard = having[0]
        if widths == {1} and len(names) == 1:
            return Matrix(shard, names[0], np.asarray(shard.columns[names[0]].values, np.float64))
        if widths == {0} and len(names) > 1:
            table = np.stack([np.asarray(shard.columns[n].values, np.float64) for n in names], axis=1)
            return Matrix(shard, names[0], table)
        return None

    def chosen(self, node: ast.AST, width: int) -> Array | None:
        """bool shape (columns,): which columns an index names."""
        out = np.zeros(width, bool)
        if isinstance(node, ast.Slice):
            ends = [None if e is None else self.fields.number(e) for e in (node.lower, node.upper)]
            if node.step is not None or any(e is None and given is not None for e, given in zip(
                    ends, (node.lower, node.upper), strict=True)):
                return None
            out[slice(*(None if e is None else int(e) for e in ends))] = True
            return out
        node = self.plain(node) or node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            inner = self.chosen(node.operand, width)
            return None if inner is None else ~inner
        said = self._compared(node)
        return said if said is not None and len(said) == width else None

    def _compared(self, node: ast.AST) -> Array | None:
        """`genes.kind == "spike"`, `names.str.startswith("ERCC")`: what a table of the columns says of each."""
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
            texts, other = self._texts(node.left), node.comparators[0]
            if texts is not None and isinstance(other, ast.Constant):
                same = np.array([t == str(other.value) for t in texts])
                return same if isinstance(node.ops[0], ast.Eq) else ~same
        if isinstance(node, ast.Call) and called(node) in ("startswith", "contains", "endswith") and node.args and (
                isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
                and isinstance(node.func, ast.Attribute)):
            inner, said = node.func.value, node.args[0].value
            texts = self._texts(inner.value if isinstance(inner, ast.Attribute) and inner.attr == "str" else inner)
            how = {"startswith": str.startswith, "endswith": str.endswith}.get(called(node), str.__contains__)
            return None if texts is None else np.array([bool(how(t, said)) for t in texts])
        return None

    def _texts(self, node: ast.AST) -> tuple[str, ...] | None:
        """The texts of a column of a table that the code reads from a file."""
        name = node.attr if isinstance(node, ast.Attribute) else node.slice.value if isinstance(
            node, ast.Subscript) and isinstance(node.slice, ast.Constant) else None
        table = self.plain(node.value) if isinstance(node, (ast.Attribute, ast.Subscript)) else None
        if not isinstance(table, ast.Call) or not table.args or not isinstance(name, str):
            return None
        shard = self._of_file(table.args[0])
        column = shard.columns.get(name) if shard is not None else None
        if shard is None or column is None or shard.numbers is not None:
            return None
        if column.kind == "text":
            return column.texts if len(column.texts) == shard.rows else None
        return tuple(str(v) for v in column.values) if not column.row_shape else None


def _only_adds_axes(node: ast.AST) -> bool:
    """Whether an index is `[:, None]`, `[:]` or the like."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return all(_is_everything(p) or (isinstance(p, ast.Constant) and p.value in (None, ...)) or (
        isinstance(p, ast.Attribute) and p.attr == "newaxis") for p in parts)


def _is_everything(node: ast.AST) -> bool:
    return isinstance(node, ast.Slice) and node.lower is None and node.upper is None and node.step is None


def _along_rows(call: ast.Call) -> bool:
    """Whether it makes one number of each row: `axis=1`, `-1`."""
    axis = next((k.value for k in call.keywords if k.arg in ("axis", "dim")), None)
    if axis is None:
        method = len(call.args) == 1 and isinstance(call.args[0], (ast.Constant, ast.UnaryOp))
        axis = call.args[0] if method else call.args[1] if len(call.args) > 1 and called(call) != "norm" else None
    if isinstance(axis, ast.UnaryOp) and isinstance(axis.op, ast.USub) and isinstance(axis.operand, ast.Constant):
        return bool(axis.operand.value == 1)
    return isinstance(axis, ast.Constant) and axis.value == 1


def _sparse(shard: Shard) -> Matrix | None:
    """A matrix in compressed rows, as scipy writes it."""
    parts = {n: c.values for n, c in shard.columns.items()} | dict(shard.beside)
    if not {"data", "indices", "indptr"} <= set(parts) or shard.numbers is not None:
        return None
    indptr, indices = parts["indptr"].astype(np.int64).reshape(-1), parts["indices"].astype(np.int64).reshape(-1)
    shape = parts.get("shape", np.array([len(indptr) - 1, int(indices.max(initial=0)) + 1])).reshape(-1)
    rows, width = len(indptr) - 1, int(shape[1])
    whole = shape[0] == rows and indptr[-1] == len(indices) == len(parts["data"]) and (np.diff(indptr) >= 0).all()
    if not whole or rows * width > MOST_VALUES or int(indices.max(initial=0)) >= width:
        return None
    values = np.zeros((rows, width))
    np.add.at(values, (np.repeat(np.arange(rows), np.diff(indptr)), indices), parts["data"].astype(np.float64))
    return Matrix(shard, "data", values)
