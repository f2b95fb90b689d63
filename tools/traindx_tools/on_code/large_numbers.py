"""Where large numbers (times since 1970, offsets, ids) were cast to a type that rounds them, before an expression.

A value is followed backwards: through names, arguments, results and entries that are written, to a number of 2**24 or
more that is added, a clock, or a column that is named after one. A cast to float32 or shorter on the way is kept.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.lookup import Lookup, returned
from traindx_tools.on_code.syntax import Syntax, argument, last_name, written

EXACT = 2.0**24
"""Above it float32 does not hold every whole number (24 bits of significand, IEEE 754)."""
NOW = 1.7e9
_CLOCK = re.compile(r"(^|_)(unix(_?time|_?ts|_?timestamps?|_?stamps?)?|posix\w*|epoch_(s|sec|secs|seconds|ms|time|ns))"
                    r"($|_)", re.IGNORECASE)  # fmt: skip
_COLUMN = re.compile(r"^(unix\w*|\w*_?timestamp(_s|_ms|_ns)?|epoch_(s|ms|time|seconds)|event_time)$", re.IGNORECASE)
_SHORT = re.compile(r"(^|\.)(float32|float16|half|bfloat16|float)$")
_MAKERS = frozenset({"tensor", "as_tensor", "array", "asarray", "full", "asanyarray"})
_TYPED = frozenset({"FloatTensor", "Tensor", "HalfTensor", "float32", "float16"})
_THROUGH = frozenset({
    "reshape", "view", "flatten", "ravel", "numpy", "to_numpy", "clone", "copy", "cpu", "cuda", "contiguous", "sort",
    "unsqueeze", "squeeze", "double", "long", "detach", "to", "astype", "type", "float", "half", "bfloat16", "tolist",
    "transpose", "permute", "expand", "roll", "sort_values", "int",
})  # fmt: skip
_JOINS = frozenset({
    "stack", "cat", "concatenate", "concat", "from_numpy", "pad_sequence", "sort", "array", "asarray", "list", "tuple",
    "tensor", "as_tensor", "sorted", "roll", "int", "float", "float64", "int64", "device_put",
})  # fmt: skip
_MOST = 160


@dataclass(frozen=True)
class Rounded:
    """A large value that was cast: where, to what, how large it is and how that is known."""

    code: Syntax
    cast: ast.Call
    short: str
    size: float
    source: str
    proven: bool

    @property
    def spacing(self) -> float:
        """The distance of two neighbours in the short type at this size."""
        bits = {"float16": 10, "half": 10, "bfloat16": 7}.get(self.short, 23)
        return 2.0 ** (math.floor(math.log2(self.size)) - bits)


Cast = tuple[Syntax, ast.Call, str]


def rounded(look: Lookup, code: Syntax, node: ast.expr) -> Rounded | None:
    """How a value is large and was cast on its way here; None where one of the two is not seen."""
    queue: list[tuple[Syntax, ast.expr, Cast | None, int | None]] = [(code, node, None, None)]
    seen: set[tuple[int, bool]] = set()
    named: Rounded | None = None
    for at, one, cast, entry in queue:
        if (id(one), cast is not None) in seen or len(seen) > _MOST:
            continue
        seen.add((id(one), cast is not None))
        found = _large(look, at, one)
        if found is not None and cast is not None and (cast[2] != "default" or found[2] == "clock"):
            size, source, kind = found
            short = "float32" if cast[2] == "default" else cast[2]
            known = Rounded(cast[0], cast[1], short, size, source, kind != "name")
            if known.proven:
                return known
            named = named or known
        queue += _before(look, at, one, cast, entry)
    return named


def _large(look: Lookup, code: Syntax, node: ast.expr) -> tuple[float, str, str] | None:
    """(size, how it is written, "number" | "clock" | "name") where a value is large by itself."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        for part in (node.left, node.right):
            number = look.number(code, part)
            if number is not None and EXACT <= number < 1e19 and not written(part).startswith("1e"):
                return number, written(node)[:50], "number"
    if isinstance(node, ast.Constant) and type(node.value) is int and EXACT <= node.value < 10**19:
        return float(node.value), str(node.value), "number"
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        if code.qualified(node.func) in ("time.time", "time.time_ns") or (
                name == "timestamp" and isinstance(node.func, ast.Attribute) and not node.args):  # fmt: skip
            return (NOW * 1e9 if name == "time_ns" else NOW), written(node)[:50], "clock"
        if name in ("integers", "randint", "arange", "linspace") and node.args:
            low = look.number(code, node.args[0])
            if low is not None and EXACT <= low < 1e19 and len(node.args) > 1:
                return low, written(node)[:50], "number"
        if name in ("astype", "view") and node.args and re.search(r"int64|'int'|^int$", written(node.args[0])):
            text = written(node.func) + written(code.origin(getattr(node.func, "value", node)))
            if re.search(r"to_datetime|datetime64|Timestamp\(|date_range|DatetimeIndex", text):
                return NOW, written(node)[:50], "clock"
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return (NOW, written(node)[:50], "name") if _COLUMN.match(node.slice.value) else None
    if isinstance(node, (ast.Name, ast.Attribute)) and _CLOCK.search(last_name(node)):
        return NOW, written(node)[:50], "name"
    return None


_Step = tuple[Syntax, ast.expr, "Cast | None", "int | None"]


def _before(look: Lookup, code: Syntax, node: ast.expr, cast: Cast | None, entry: int | None) -> list[_Step]:
    """Where a value comes from, one step back, with the cast that is met."""
    if isinstance(node, ast.Attribute) and node.attr in ("values", "data", "T", "array"):
        return [(code, node.value, cast, entry)]
    if isinstance(node, (ast.Name, ast.Attribute)):
        return [(c, v, cast, entry) for c, v in _bound(look, code, node)]
    if isinstance(node, ast.Subscript):
        number = node.slice.value if isinstance(node.slice, ast.Constant) else None
        which = number if isinstance(number, int) and isinstance(node.value, (ast.Call, ast.Name)) else None
        return [(code, node.value, cast, which)]
    if isinstance(node, ast.Call):
        return _of_call(look, code, node, cast, entry)
    if isinstance(node, ast.BinOp):
        return [(code, n, cast, None) for n in _operands(look, code, node)]
    if isinstance(node, ast.IfExp):
        return [(code, n, cast, entry) for n in (node.body, node.orelse)]
    if isinstance(node, (ast.List, ast.Tuple)):
        parts = node.elts[:4]
        if entry is not None and entry < len(node.elts):
            parts = [node.elts[entry]]
        return [(code, n, cast, None) for n in parts]
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return [(code, node.elt, cast, None)]
    return [(code, node.value, cast, entry)] if isinstance(node, ast.Starred) else []


def _operands(look: Lookup, code: Syntax, node: ast.BinOp) -> Iterator[ast.expr]:
    """The operands that keep a value large: a difference, a remainder and whole days are small."""
    if isinstance(node.op, (ast.Add, ast.Mult)):
        yield from (n for n in (node.left, node.right) if not isinstance(n, ast.Constant))
    elif isinstance(node.op, (ast.Div, ast.FloorDiv)):
        divisor = look.number(code, node.right)
        if divisor in (1e3, 1e6, 1e9) or (divisor is not None and isinstance(node.op, ast.Div)):
            yield node.left


def _of_call(look: Lookup, code: Syntax, call: ast.Call, cast: Cast | None, entry: int | None) -> list[_Step]:
    name = last_name(call.func)
    now = _cast(code, call) or cast
    own = look.function(code, call.func)
    if own is not None:
        return [(own[0], r, now, entry) for r in list(returned(own[1]))[:3]]
    if isinstance(call.func, ast.Attribute) and name in _THROUGH and not (code.qualified(call.func)):
        return [(code, call.func.value, now, None)]
    if (name in _JOINS or name in _TYPED) and call.args:
        return [(code, call.args[0], now, None)]
    if name == "zip":
        return [(code, call.args[entry], now, None)] if entry is not None and entry < len(call.args) else []
    return []


def _cast(code: Syntax, call: ast.Call) -> Cast | None:
    """The cast that a call makes: `torch.tensor(x, dtype=torch.float32)`, `x.float()`, `x.astype("float32")`."""
    name, library = last_name(call.func), code.qualified(call.func)
    if name in _TYPED and library.startswith(("torch.", "numpy.", "jax.numpy.")):
        return code, call, "float16" if "alf" in name or name == "float16" else "float32"
    if name in _MAKERS and library:
        kind = argument(call, 1, "dtype")
        if kind is None and library.startswith(("torch.", "jax.")):
            return code, call, "default"
        short = _SHORT.search(_text(kind))
        numpy_float = library.startswith("numpy") and _text(kind) == "float"  # Python's float: float64
        return (code, call, short[2]) if short is not None and not numpy_float else None
    if isinstance(call.func, ast.Attribute) and not library:
        if name in ("float", "half", "bfloat16") and not call.args:
            return code, call, {"float": "float32"}.get(name, name)
        if name in ("to", "astype", "type"):
            kind = argument(call, 0, "dtype")
            short = _SHORT.search(_text(kind))
            return (code, call, short[2]) if short is not None and _text(kind) != "float" else None
    return None


def _text(node: ast.expr | None) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else written(node)


def _bound(look: Lookup, code: Syntax, node: ast.Name | ast.Attribute) -> Iterator[tuple[Syntax, ast.expr]]:
    """What a name is given: assigned, written into, appended, run through by a loop, passed or imported."""
    made = code.assigned(node)
    values = [made] if made is not None else [v for _, v in code.bindings(node)[:4]]
    yield from ((code, v) for v in values)
    text, scope = written(node), code.scope(node)
    for statement in code.item_stores.get(text, ()):
        if code.scope(statement) is scope:
            yield code, statement.value
    for call in code.calls("append"):
        if isinstance(call.func, ast.Attribute) and written(call.func.value) == text and call.args:
            yield code, call.args[0]
    if values:
        return
    for up in code.above(node):
        makers = up.generators if isinstance(up, (ast.ListComp, ast.GeneratorExp)) else [up] if isinstance(
            up, ast.For) else []  # fmt: skip
        for maker in makers:
            parts = maker.target.elts if isinstance(maker.target, ast.Tuple) else [maker.target]
            for i, part in enumerate(parts):
                if written(part) == text:
                    index = ast.copy_location(ast.Subscript(maker.iter, ast.Constant(i), ast.Load()), node)
                    yield code, index if len(parts) > 1 else maker.iter
                    return
    step = look.one_step(code, node)
    if step is not None:
        yield step
