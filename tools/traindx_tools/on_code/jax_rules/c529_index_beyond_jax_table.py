"""Ids lie beyond a table, and JAX says nothing.

An index outside an array is no error in JAX. `table[ids]` takes the last row for it (equinox's Embedding too) and drops
its gradient: all ids beyond the table share a row that learns nothing from them. `jnp.take`, `take_along_axis` and the
Embed of flax give NaN. `x.at[ids].set`, `.add`, `segment_sum` and `bincount(length=)` leave it out. Torch and numpy
would stop. The table must have as many rows as there are ids: the vocabulary with its special tokens, the highest id
plus one, the modulus of the hash. (Measured with JAX 0.10.)
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.id_ranges import Ranges
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.number_ranges import Number, Range, beyond
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C529",
    name="index-beyond-jax-table",
    title="Ids lie beyond a table, and JAX raises no error",
    severity=Severity.HIGH,
    sees="Tables with a known number of rows that are indexed in JAX by ids that reach further where they are made.",
    matters="Ids beyond the table share its last row, give NaN or are left out; no error is raised.",
    alike=("ids that are clipped or taken modulo the table's size on purpose", "padding of -1, which is the last row"),
    confirm=("print(ids.max(), table.shape[0])",
             "x.at[ids].get(mode='fill', fill_value=jnp.nan) shows NaN for each id beyond the table"),
)  # fmt: skip
_EFFECTS = {
    "clamped": "all of them read the last row (index {last}), without a gradient",
    "nan": "each of them gives NaN",
    "dropped": "they are left out without a word",
}
_EMBEDS = {"flax.linen.Embed": "nan", "flax.nnx.Embed": "nan", "equinox.nn.Embedding": "clamped",
           "haiku.Embed": "clamped"}  # fmt: skip
_MAKERS = frozenset({"normal", "uniform", "truncated_normal", "zeros", "ones", "full", "glorot_uniform", "orthogonal",
                     "init", "initializer", "embed_init", "param", "randn", "empty"})  # fmt: skip
_SEGMENTS = frozenset({"segment_sum", "segment_max", "segment_min", "segment_prod"})
_UPDATES = frozenset({"set", "add", "subtract", "multiply", "divide", "min", "max", "apply", "power"})


def check(project: Project) -> Iterator[Finding]:
    """Look at every place where ids look something up."""
    if not any("jax" in f.text or "flax" in f.text or "equinox" in f.text for f in project.files):
        return
    look = lookup(project)
    ranges = Ranges(look)
    tables = _entries(look)
    for code in look.codes:
        if "jax" not in code.file.text and "flax" not in code.file.text and "equinox" not in code.file.text:
            continue
        seen: set[int] = set()
        for node, ids, size, effect, what in _lookups(look, code, ranges, tables):
            known = ranges.of(code, ids)
            if known is not None and beyond(known.high, size) and node.lineno not in seen:
                seen.add(node.lineno)
                yield _finding(code, node, ids, known, size, effect, what)


_Place = tuple[ast.expr, ast.expr, Number, str, str]
_Tables = dict[str, list[tuple[Syntax, ast.expr]]]


def _lookups(look: Lookup, code: Syntax, ranges: Ranges, tables: _Tables) -> Iterator[_Place]:
    """(place, ids, rows, what happens beyond, the table's name)."""
    def rows(node: ast.expr) -> Number | None:
        return _rows(look, code, node, ranges, tables)

    for item in code.of(ast.Subscript):
        if not isinstance(item.ctx, ast.Load) or isinstance(item.slice, (ast.Constant, ast.Slice, ast.UnaryOp)):
            continue
        ids = item.slice.elts[0] if isinstance(item.slice, ast.Tuple) and item.slice.elts else item.slice
        if isinstance(item.value, ast.Attribute) and item.value.attr == "at":
            method = code.parent(item)
            size = rows(item.value.value)
            if size is not None and isinstance(method, ast.Attribute) and method.attr in _UPDATES:
                yield item, ids, size, "dropped", written(item.value.value)
        elif isinstance(item.value, (ast.Name, ast.Attribute, ast.Subscript)):
            size = rows(item.value)
            if size is not None:
                yield item, ids, size, "clamped", written(item.value)
    for call in code.of(ast.Call):
        yield from _called(code, call, ranges, rows)


def _called(code: Syntax, call: ast.Call, ranges: Ranges,
            rows: Callable[[ast.expr], Number | None]) -> Iterator[_Place]:
    name, full = last_name(call.func), code.qualified(call.func)
    if name == "take" and full == "jax.numpy.take" and argument(call, 99, "mode") is None:
        table, ids = argument(call, 0, "a"), argument(call, 1, "indices")
        size = rows(table) if table is not None else None
        if size is not None and ids is not None:
            yield call, ids, size, "nan", written(table)
    elif (name in _SEGMENTS and full.startswith("jax.")) or full == "jax.numpy.bincount":
        count = argument(call, 2, "num_segments") if name in _SEGMENTS else argument(call, 3, "length")
        segments = argument(call, 1, "segment_ids") if name in _SEGMENTS else argument(call, 0, "x")
        number = ranges.number(code, count)
        if number is not None and segments is not None:
            yield call, segments, number, "dropped", name
    else:
        yield from _embedded(code, call, ranges)


def _embedded(code: Syntax, call: ast.Call, ranges: Ranges) -> Iterator[_Place]:
    """`nn.Embed(V, D)(ids)`, `self.embed(ids)`, `jax.vmap(self.embed)(ids)`."""
    layer: ast.expr = call.func
    while isinstance(layer, ast.Call) and last_name(layer.func) in ("vmap", "filter_vmap") and layer.args:
        layer = layer.args[0]
    made = code.origin(layer) if isinstance(layer, (ast.Name, ast.Attribute)) else layer
    if not isinstance(made, ast.Call) or not call.args:
        return
    effect = _EMBEDS.get(code.qualified(made.func))
    if effect is None:
        return
    size = ranges.number(code, argument(made, 0, "num_embeddings", "vocab_size"))
    if size is not None:
        yield call, call.args[0], size, effect, written(made.func)


def _rows(look: Lookup, code: Syntax, node: ast.expr, ranges: Ranges, tables: _Tables) -> Number | None:
    """How many rows an array has, by the shape that it was made with."""
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        places = tables.get(key, []) if isinstance(key, str) else []
        sizes = {_first_axis(of, made, ranges, params=True) for of, made in places}
        return next(iter(sizes)) if len(sizes) == 1 else None
    of, made = look.origin(code, node)
    if made is node and isinstance(node, ast.Attribute):
        sizes = {_first_axis(c, v, ranges, params=True) for c, v in tables.get(f".{node.attr}", [])}
        return next(iter(sizes)) if len(sizes) == 1 else None
    return _first_axis(of, made, ranges)


def _entries(look: Lookup) -> _Tables:
    """What is put under a key of a dictionary (`{"table": normal(k, (n, d))}`), or a keyword of an object."""
    found: _Tables = {}
    for code in look.codes:
        for made in code.of(ast.Dict):
            for key, value in zip(made.keys, made.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    found.setdefault(key.value, []).append((code, value))
        for name, stores in code.item_stores.items():
            for store in stores:
                target = store.targets[0]
                key = target.slice if isinstance(target, ast.Subscript) else None
                if isinstance(key, ast.Constant) and isinstance(key.value, str) and name:
                    found.setdefault(key.value, []).append((code, store.value))
        for call in code.of(ast.Call):
            for keyword in call.keywords:
                if keyword.arg is not None and (last_name(call.func)[:1].isupper() or last_name(call.func) == "dict"):
                    found.setdefault(f".{keyword.arg}", []).append((code, keyword.value))
                    if last_name(call.func) == "dict":
                        found.setdefault(keyword.arg, []).append((code, keyword.value))
    return found


def _first_axis(code: Syntax, node: ast.expr, ranges: Ranges, params: bool = False,
                left: int = 8) -> Number | None:  # fmt: skip
    """The first number of the shape in `0.1 * normal(key, (n, d))`, `self.param("table", init, (n, d))`.

    `params`: arrays of numpy count as well, since a transformed function gets them as JAX arrays.
    """
    node = code.origin(node)
    left -= 1
    if left < 0:
        return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        one, two = (_first_axis(code, side, ranges, params, left) for side in (node.left, node.right))
        return one if two is None else two if one is None else None
    if not isinstance(node, ast.Call):
        return None
    name = last_name(node.func)
    if name in ("asarray", "array", "device_put") and node.args and code.qualified(node.func).startswith("jax."):
        return _first_axis(code, node.args[0], ranges, params=True, left=left)
    if name == "astype" and isinstance(node.func, ast.Attribute):
        return _first_axis(code, node.func.value, ranges, params, left)
    if not _makes_arrays(code, node, name, params):
        return None
    for value in (*node.args, *(k.value for k in node.keywords if k.arg in ("shape", "size"))):
        if isinstance(value, ast.Tuple) and value.elts:
            return ranges.number(code, value.elts[0])
    return ranges.number(code, node.args[0]) if name in ("zeros", "ones", "full", "empty") and node.args else None


def _makes_arrays(code: Syntax, call: ast.Call, name: str, params: bool) -> bool:
    if isinstance(call.func, ast.Call):  # nn.initializers.normal(0.02)(key, (n, d))
        return "init" in written(call.func.func) or code.qualified(call.func.func).startswith("jax.nn")
    known = code.qualified(call.func).startswith(("jax.", "flax.", "haiku."))
    return name in _MAKERS and (known or params or name in ("param", "embed_init"))


def _finding(code: Syntax, node: ast.expr, ids: ast.expr, known: Range, size: Number, effect: str,
             what: str) -> Finding:  # fmt: skip
    then = _EFFECTS[effect].format(last=size.shifted(-1))
    return RULE.finding(
        f"{written(ids)[:60]} at {code.at(node)} reaches {known.high} (made at {known.code.at(known.made)}), and "
        f"{what} has {size} rows (0 to {size.shifted(-1)}): for ids from {size} on JAX raises nothing, {then}",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": effect, "highest": str(known.high), "rows": str(size)},
    )
