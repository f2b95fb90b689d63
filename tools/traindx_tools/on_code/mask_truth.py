"""Where a mask is true: at what is there, at what was filled up, or in a triangle of positions."""

from __future__ import annotations

from traindx_tools.on_code.values import Const, Operation, Symbol, Tensor, Value

CONTENT, BLANK, TRIANGLE = "true_for_content", "true_for_blank", "triangle"
POLARITY = frozenset({CONTENT, BLANK, TRIANGLE})
_OPPOSITE = {CONTENT: BLANK, BLANK: CONTENT}
_METHODS = {"ne": "!=", "eq": "=="}
_KEEPS = frozenset({"to", "bool", "cuda", "unsqueeze", "contiguous", "clone", "view", "float", "type_as", "half"})


def compared(sign: str, left: Value, right: Value) -> frozenset[str]:
    """Of a comparison: `ids != pad` and `arange(n) < lengths` are true for what is there."""
    ramps = ["ramp" in v.tags if isinstance(v, Tensor) else False for v in (left, right)]
    if all(ramps):
        return frozenset({TRIANGLE})
    if any(ramps):
        below = sign in (("<", "<=") if ramps[0] else (">", ">="))
        above = sign in ((">", ">=") if ramps[0] else ("<", "<="))
        return frozenset({CONTENT} if below else {BLANK} if above else ())
    if any(isinstance(v, Const) and v.value == 1 for v in (left, right)):
        return frozenset()  # of ids 1 may be the padding, of a mask it is what is there
    return frozenset({"!=": {CONTENT}, "==": {BLANK}}.get(sign, ()))


def turned(tags: frozenset[str]) -> frozenset[str]:
    """The tags of `~mask`."""
    return frozenset(_OPPOSITE.get(t, t) for t in tags)


def of(value: Value | None) -> frozenset[str]:
    """What is known of a mask, also where a part of the comparison is not known."""
    if isinstance(value, Tensor):
        return value.tags & POLARITY
    if isinstance(value, Operation) and value.op == "compare" and len(value.operands) == 2:
        return compared(value.detail, *value.operands)
    if isinstance(value, Operation) and value.op == "~":
        return turned(of(value.operands[0]))
    if isinstance(value, Symbol) and value.role == "call":
        name = value.name.partition("@")[0].rpartition(".")[2]
        if name in _METHODS and value.parent is not None:
            return compared(_METHODS[name], value.parent, value.parent)
        return of(value.parent) if name in _KEEPS else frozenset()
    return frozenset()


def joined(parts: list[Tensor]) -> frozenset[str]:
    """Of several masks in a row: what one of them says; ones in front are for something that is there."""
    if any(CONTENT in t.tags or (t.dtype == "bool" and t.low == 1 and t.high == 1) for t in parts):
        return frozenset({CONTENT})
    return frozenset({BLANK}) if any(BLANK in t.tags for t in parts) else frozenset()
