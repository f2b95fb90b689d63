"""Which fields of the data an expression of the code is, perhaps cast, and what it makes of them with a number.

A field is named by a text (`row["price"]`, `batch.pop("price")`, `pl.col("price")`), by several (`df[["a", "b"]]`,
`df[COLUMNS]`, `df[c]` within `for c in COLUMNS`), or as an attribute (`df.price`) where the file reads tables; or by a
name that was assigned such an expression once. What is called a configuration is no data.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

CASTS = frozenset({"cast", "float", "float32", "astype", "asarray", "array", "tensor", "as_tensor", "from_numpy",
                   "to_numpy", "constant", "convert_to_tensor", "double", "numpy", "to_list", "tolist", "copy"})
JOINS = frozenset({"stack", "concatenate", "vstack", "hstack", "cat", "fromiter", "list"})
"""What makes one array of a field of all rows: `np.stack([r["x"] for r in rows])`."""
_EACH = (ast.ListComp, ast.GeneratorExp)
_SETTINGS = re.compile(r"(?i)(?:conf|cfg|arg|opt|hp|hyper|setting|param)")
_LOADED = ("json.load", "json.loads", "safe_load", "yaml.load", "parse_args", "vars", "dict", "toml.load",
           "OmegaConf.load")
_TABLES = re.compile(r"\b(?:pandas|polars|read_csv|read_parquet|read_json|DataFrame|itertuples)\b")
_NO_FIELDS = frozenset({"shape", "size", "index", "columns", "values", "dtypes", "iloc", "loc", "at", "dtype", "ndim",
                        "real", "imag", "flat", "data", "grad", "device", "str", "dt", "cat", "plot", "style", "attrs",
                        "count", "mean", "std", "min", "max", "sum", "rank", "mode", "name", "names", "items"})
"""Attributes of tables and arrays that are no columns."""


@dataclass(frozen=True)
class Affine:
    """scale * field + shift, of each of the fields."""

    fields: tuple[str, ...]
    scale: float = 1.0
    shift: float = 0.0


@dataclass(frozen=True, eq=False)
class Fields:
    """What a file of code calls the fields that the data hold."""

    tree: ast.AST
    known: frozenset[str]
    text: str = field(default="", repr=False)
    """The code, for whether it reads tables."""

    @cached_property
    def _nodes(self) -> tuple[ast.AST, ...]:
        return tuple(ast.walk(self.tree))

    @cached_property
    def _modules(self) -> frozenset[str]:
        return frozenset((a.asname or a.name).split(".")[0] for n in self._nodes
                         if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names)

    @cached_property
    def settings(self) -> frozenset[str]:
        """Names of configurations: what they hold under a field's name is no data."""
        found = {"self", "cls"}
        for node in self._nodes:
            if isinstance(node, ast.Assign) and (isinstance(node.value, ast.Dict) or (
                    isinstance(node.value, ast.Call) and ast.unparse(node.value.func).endswith(_LOADED))):
                found |= {n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        return frozenset(found)

    @cached_property
    def _once(self) -> dict[str, ast.expr]:
        """What names stand for throughout: assigned once, and that is it."""
        found: dict[str, list[ast.expr | None]] = {}
        for node in self._nodes:
            if isinstance(node, ast.Assign):
                given = [g for target in node.targets for g in _given(target, node.value)]
            elif isinstance(node, (ast.For, ast.comprehension)):
                given = list(_looped_over(node.target, node.iter))
            elif isinstance(node, (ast.AugAssign, ast.NamedExpr)):
                given = [(n.id, None) for n in ast.walk(node.target) if isinstance(n, ast.Name)]
            else:
                continue
            for name, value in given:
                found.setdefault(name, []).append(value)
        for name, values in self._parameters.items():
            found.setdefault(name, values)
        return {n: f[0] for n, f in found.items() if len(f) == 1 and f[0] is not None}

    @cached_property
    def _parameters(self) -> dict[str, list[ast.expr | None]]:
        """What parameters stand for, where their function is called once: what it is given."""
        calls: dict[str, list[ast.Call]] = {}
        for node in self._nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                calls.setdefault(node.func.id, []).append(node)
        found: dict[str, list[ast.expr | None]] = {}
        for node in self._nodes:
            if isinstance(node, (ast.FunctionDef, ast.Lambda)):
                call = calls.get(node.name, []) if isinstance(node, ast.FunctionDef) else []
                for at, parameter in enumerate(node.args.args):
                    given = call[0].args[at] if len(call) == 1 and at < len(call[0].args) else None
                    same = isinstance(given, ast.Name) and given.id == parameter.arg
                    found.setdefault(parameter.arg, []).append(None if same else given)
        return found

    def stands_for(self, name: str) -> ast.expr | None:
        """What a name that is assigned once stands for."""
        return self._once.get(name)

    def is_module(self, name: str) -> bool:
        """Whether a name is that of an imported module."""
        return name in self._modules or name in ("np", "numpy", "torch", "math", "jnp", "tf")

    @cached_property
    def _looped(self) -> dict[str, tuple[str, ...]]:
        """Names that loops give to the texts of a list."""
        found: dict[str, tuple[str, ...]] = {}
        for node in self._nodes:
            if isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.target, ast.Name):
                found[node.target.id] = (*found.get(node.target.id, ()), *self._texts(node.iter))
        return found

    def _texts(self, node: ast.AST, depth: int = 0) -> tuple[str, ...]:
        """The texts of a list that an expression is."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return (node.value,)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return tuple(t for e in node.elts for t in self._texts(e, depth))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return (*self._texts(node.left, depth), *self._texts(node.right, depth))
        if isinstance(node, ast.Name) and depth < 3 and node.id in self._once:
            return self._texts(self._once[node.id], depth + 1)
        return ()

    def _root(self, node: ast.AST) -> str:
        """The name at the beginning of `a["x"].b`."""
        while not isinstance(node, ast.Name):
            inner = getattr(node, "value", None) or getattr(node, "func", None)
            if not isinstance(inner, ast.AST):
                return ""
            node = inner
        return node.id

    def _is_data(self, node: ast.AST) -> bool:
        root = self._root(node)
        return root not in self.settings and not _SETTINGS.match(root)

    def of(self, node: ast.AST | None, depth: int = 0) -> tuple[str, ...]:
        """The fields that an expression is, cast or not; () where it is something else."""
        while (isinstance(node, ast.Call) and called(node) in CASTS | JOINS) or isinstance(node, _EACH):
            node = node.elt if isinstance(node, _EACH) else argument(node, "astype", "copy")
        if isinstance(node, ast.Attribute) and node.attr == "values":
            node = node.value
        if isinstance(node, ast.Name):
            return self.of(self._once[node.id], depth + 1) if node.id in self._once and depth < 4 else ()
        if node is None or not self._is_data(node):
            return ()
        keys: tuple[str, ...] = ()
        if isinstance(node, ast.Subscript):
            looped = self._looped.get(node.slice.id, ()) if isinstance(node.slice, ast.Name) else ()
            keys = looped or self._texts(node.slice)
        elif isinstance(node, ast.Call) and called(node) in ("pop", "get", "col") and node.args:
            keys = self._texts(node.args[0])
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and self._reads_tables and (
                node.attr not in _NO_FIELDS and not self._is_no_table(node.value.id)):
            keys = (node.attr,)
        return tuple(k for k in dict.fromkeys(keys) if k in self.known)

    def _is_no_table(self, name: str) -> bool:
        """Whether a name stands for a module or an object of a class, such as a model, that has no columns."""
        if name in self._modules:
            return True
        value = self._once.get(name)
        return isinstance(value, ast.Call) and called(value)[:1].isupper() and called(value) != "DataFrame"

    @cached_property
    def _reads_tables(self) -> bool:
        return bool(_TABLES.search(self.text))

    def number(self, node: ast.AST) -> float | None:
        """The number that an expression is, also by a name."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.number(node.operand)
            return None if inner is None else -inner
        if isinstance(node, ast.Name):
            node = self._once.get(node.id, node)
        return float(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) else None

    def affine(self, node: ast.AST | None, depth: int = 0) -> Affine | None:
        """What an expression makes of one field, or of each of several, with numbers alone."""
        if node is None or depth > 8:
            return None
        fields = self.of(node)
        if fields:
            return Affine(fields)
        if isinstance(node, ast.Call) and called(node) in CASTS:
            return self.affine(argument(node, "astype", "copy"), depth + 1)
        if isinstance(node, ast.Name) and node.id in self._once:
            return self.affine(self._once[node.id], depth + 1)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.affine(node.operand, depth + 1)
            return inner and Affine(inner.fields, -inner.scale, -inner.shift)
        return self._of_two(node, depth) if isinstance(node, ast.BinOp) else None

    def _of_two(self, node: ast.BinOp, depth: int) -> Affine | None:
        left, right = self.number(node.left), self.number(node.right)
        side = node.right if left is not None else node.left
        number = left if left is not None else right
        inner = self.affine(side, depth + 1) if number is not None else None
        if inner is None or number is None:
            return None
        a, b = inner.scale, inner.shift
        if isinstance(node.op, ast.Add):
            return Affine(inner.fields, a, b + number)
        if isinstance(node.op, ast.Sub):
            return Affine(inner.fields, a, b - number) if left is None else Affine(inner.fields, -a, number - b)
        if isinstance(node.op, ast.Mult):
            return Affine(inner.fields, a * number, b * number)
        if isinstance(node.op, ast.Div) and left is None and number:
            return Affine(inner.fields, a / number, b / number)
        return None

    def changed(self) -> Iterator[tuple[str, int]]:
        """Fields that the code gives other values, and the last line of where it does."""
        for node in self._nodes:
            if isinstance(node, (ast.Assign, ast.AugAssign)):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, (ast.Subscript, ast.Attribute)) and not self.of(
                            node.value if isinstance(node, ast.Assign) else None):
                        yield from ((f, node.end_lineno or node.lineno) for f in self.of(target))
            elif isinstance(node, ast.Call) and called(node) in ("assign", "with_columns"):
                yield from ((k.arg, node.end_lineno or node.lineno) for k in node.keywords if k.arg in self.known
                            and k.arg is not None)


def _given(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr | None]]:
    """The names of a target and what each is given; None where that is a part of something."""
    if isinstance(target, ast.Name):
        yield target.id, value
        return
    names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    parts = _parts(value)
    if names and len(names) == len(parts) and all(isinstance(n, ast.Name) for n in names):
        yield from ((n.id, p) for n, p in zip(names, parts, strict=True) if isinstance(n, ast.Name))
        return
    yield from ((n.id, None) for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def _parts(value: ast.expr) -> list[ast.expr]:
    """What an expression is taken apart into: a tuple, or the columns of `df[["a", "b"]].values.T`."""
    if isinstance(value, (ast.Tuple, ast.List)):
        return list(value.elts)
    if not (isinstance(value, ast.Attribute) and value.attr == "T"):
        return []
    table: ast.AST = value.value
    while not isinstance(table, ast.Subscript):
        inner = getattr(table, "value", None) or getattr(table, "func", None)
        if not isinstance(inner, ast.AST):
            return []
        table = inner
    if not isinstance(table.slice, (ast.List, ast.Tuple)):
        return []
    return [ast.Subscript(table.value, key, ast.Load()) for key in table.slice.elts]


def _looped_over(target: ast.expr, over: ast.expr) -> Iterator[tuple[str, ast.expr | None]]:
    """The names that a loop gives values: those of `zip(df["a"], df["b"])` are rows of fields."""
    zipped = isinstance(over, ast.Call) and called(over) == "zip" and not over.keywords
    if zipped and isinstance(target, ast.Tuple) and isinstance(over, ast.Call):
        yield from _given(target, ast.Tuple(over.args, ast.Load()))
        return
    yield from ((n.id, None) for n in ast.walk(target) if isinstance(n, ast.Name))


def called(call: ast.Call) -> str:
    """The last name of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else str(getattr(call.func, "id", ""))


def argument(call: ast.Call, *methods: str) -> ast.expr | None:
    """What a function is called on: its first argument, or what it is a method of."""
    if isinstance(call.func, ast.Attribute) and (not call.args or call.func.attr in methods):
        return call.func.value
    return call.args[0] if call.args else None
