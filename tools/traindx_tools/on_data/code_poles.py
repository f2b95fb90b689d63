"""Fields whose logarithm or root the code takes, or by which it divides, beside the values that the data hold there.

Nothing is run: a field is named by a text (`row["price"]`, `batch.pop("price")`, `.get("price")`) of what is no
configuration, perhaps cast, or by a name that was assigned such an expression once. What the code does about bad values
is not followed: wherever it names the field in a comparison, in a text with more than the name (a query), or under a
call that bounds, fills or filters, or looks for finite values at all, it is believed to have seen to it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from traindx_tools.finding import Finding
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.rules.d175_at_a_pole import finding_of
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet

_LOGS, _ROOTS = frozenset({"log", "log2", "log10"}), frozenset({"sqrt", "rsqrt"})
_CASTS = frozenset({"cast", "float", "float32", "astype", "asarray", "array", "tensor", "as_tensor", "from_numpy",
                    "to_numpy", "constant", "convert_to_tensor", "double", "numpy"})
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
    """"log", "root" or "division"."""
    text: str
    file: str
    line: int


def at_poles(sets: Sequence[DataSet], code: Sequence[Path]) -> Iterator[Finding]:
    """A finding for each shard and field with rows at a pole of what the code does with it."""
    known = {n for d in sets for s in d.shards for n, c in s.columns.items() if _is_single(s, n)}
    if not known:
        return
    done: set[tuple[str, str]] = set()
    for use in uses_of(code, known):
        for data in sets:
            having = [s for s in data.shards if use.field in s.columns and _is_single(s, use.field)]
            bad = [np.flatnonzero(_at_pole(np.asarray(s.columns[use.field].values, np.float64), use.kind))
                   for s in having]
            clean = sum(not len(b) for b in bad)
            for shard, where in zip(having, bad, strict=True):
                if len(where) and (shard.name, use.field) not in done:
                    done.add((shard.name, use.field))
                    yield finding_of(shard, use.field, where, use.text, use.kind, f"{use.file}:{use.line}", clean)


def _is_single(shard: Shard, name: str) -> bool:
    column = shard.columns[name]
    return column.kind == "number" and not column.row_shape and column.values.dtype.kind in "iuf" and (
        column.rows == shard.rows)


def _at_pole(values: Array, kind: str) -> Array:
    with np.errstate(invalid="ignore"):
        return np.asarray(values <= 0 if kind == "log" else values < 0 if kind == "root" else values == 0)


def uses_of(code: Sequence[Path], known: set[str]) -> list[Use]:
    """The uses of these fields, without those that some code pays heed to."""
    trees = []
    for path in code:
        try:
            if path.suffix == ".py" and path.stat().st_size <= MOST_CODE:
                trees.append((path, ast.parse(path.read_text(encoding="utf-8", errors="replace"))))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    heeded = {f for _, tree in trees for f in _heeded(tree, known)}
    if any(isinstance(n, ast.Call) and _called(n) in _WHOLE for _, tree in trees for n in ast.walk(tree)):
        return []
    return [u for path, tree in trees for u in _uses(path, tree, known) if u.field not in heeded]


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else str(getattr(call.func, "id", ""))


def _heeded(tree: ast.AST, known: set[str]) -> Iterator[str]:
    """Fields that a comparison, a bound or a filter names, also through the name that they were given."""
    names = _assigned(tree, known)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in known:
            yield from (f for f in known if f in node.value and any(c in node.value for c in "<>=!"))
        if isinstance(node, (ast.Compare, ast.Subscript, ast.AugAssign)) or (
                isinstance(node, ast.Call) and _called(node) in _HEED):
            inner = [node.slice] if isinstance(node, ast.Subscript) else [node]
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                continue  # the field itself
            for n in (m for part in inner for m in ast.walk(part)):
                if (field := _field(n, known, names)) is not None:
                    yield field


def _settings(tree: ast.AST) -> set[str]:
    """Names of configurations: what they hold under a field's name is no data."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            text = ast.unparse(node.value.func)
            if text.endswith(("json.load", "json.loads", "safe_load", "yaml.load", "parse_args", "vars", "dict",
                              "toml.load", "OmegaConf.load")):
                found |= {n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            found |= {n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return found


def _root(node: ast.AST) -> str:
    """The name at the beginning of `a["x"].b`."""
    while not isinstance(node, ast.Name):
        inner = getattr(node, "value", None) or getattr(node, "func", None)
        if not isinstance(inner, ast.AST):
            return ""
        node = inner
    return node.id


def _assigned(tree: ast.AST, known: set[str]) -> dict[str, str]:
    """Names that stand for a field throughout: assigned once, and that is it."""
    found: dict[str, list[str | None]] = {}
    settings = _settings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for name in (n for n in ast.walk(target) if isinstance(n, ast.Name)):
                    plain = isinstance(target, ast.Name) and _root(node.value) not in settings
                    field = _field(node.value, known, {}) if plain else None
                    found.setdefault(name.id, []).append(field)
        elif isinstance(node, (ast.AugAssign, ast.For, ast.comprehension)):
            for name in (n for n in ast.walk(node.target) if isinstance(n, ast.Name)):
                found.setdefault(name.id, []).append(None)
    return {n: f[0] for n, f in found.items() if len(f) == 1 and f[0] is not None}


def _field(node: ast.AST, known: set[str], names: dict[str, str]) -> str | None:
    """The field that an expression is, cast or not."""
    while isinstance(node, ast.Call) and _called(node) in _CASTS:
        method = isinstance(node.func, ast.Attribute) and (not node.args or _called(node) == "astype")
        inner = node.func.value if method and isinstance(node.func, ast.Attribute) else (
            node.args[0] if node.args else None)
        if inner is None:
            return None
        node = inner
    if isinstance(node, ast.Attribute) and node.attr == "values":
        node = node.value
    if isinstance(node, ast.Name):
        return names.get(node.id)
    key: object = None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        key = node.slice.value
    elif isinstance(node, ast.Call) and _called(node) in ("pop", "get") and node.args:
        key = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
    return key if isinstance(key, str) and key in known else None


def _uses(path: Path, tree: ast.AST, known: set[str]) -> Iterator[Use]:
    names, settings = _assigned(tree, known), _settings(tree)
    for node in ast.walk(tree):
        inner: ast.AST | None = None
        kind = ""
        if isinstance(node, ast.Call) and _called(node) in _LOGS | _ROOTS:
            kind = "log" if _called(node) in _LOGS else "root"
            method = isinstance(node.func, ast.Attribute) and not node.args
            inner = node.func.value if method and isinstance(node.func, ast.Attribute) else (
                node.args[0] if node.args else None)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            kind, inner = "division", node.right
        field = _field(inner, known, names) if inner is not None else None
        if field is not None and inner is not None and _root(inner) not in settings | {"self"} and not re.match(
                r"(?i)(?:conf|cfg|arg|opt|hp|hyper|setting|param)", _root(inner)):
            assert isinstance(node, ast.expr)
            text = ast.unparse(node)
            yield Use(field, kind, text if len(text) <= 60 else f"{text[:57]}...", path.name, node.lineno)
