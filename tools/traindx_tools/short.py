"""Values and messages in a few words: what an array is, never what it holds.

A notebook prints what stands in its last line, and a message may quote what a program had in its hands. Rows of numbers
and addresses tell nobody anything there; dtype and shape do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

LONGEST = 80
"""Characters of anything that is no array."""
_SHOWN = 3
_CONTAINERS = 4
_KEPT = 40
"""Characters of an array that may stay as it is printed: a handful of numbers is quicker read than described."""
_OPENS = re.compile(r"\b(?P<kind>array|tensor|Array|Tensor|DeviceArray|Parameter containing:\s*tensor)\(")
_TAIL = re.compile(r"dtype=(?:np\.|torch\.|jnp\.)?(?P<dtype>\w+)")
_SHAPE = re.compile(r"shape=(?P<shape>\([\d, ]*\))")
_CLOSE = re.compile(r"[^()\[\]]{0,200}(?:\([^()]{0,80}\)[^()\[\]]{0,200})?\)")
_DEEPEST = 8
"""Axes of an array at most; deeper brackets are none."""
_OBJECT = re.compile(r"<(?:[\w.]*\.)?(?P<name>\w+) object at 0x[0-9a-fA-F]+>")
_FRACTION = re.compile(r"\d\.|\d[eE][-+]?\d|\bnan\b|\binf\b", re.IGNORECASE)


def in_short(value: Any, depth: int = _CONTAINERS) -> str:
    """A value in at most a line: "float32[64, 3, 32, 32]" for an array, the first parts of a container.

    `depth`: containers within each other that are looked into; deeper ones, and what holds itself, are "[...]".
    """
    shape, dtype = attribute(value, "shape"), attribute(value, "dtype")
    if dtype is not None and isinstance(shape, (tuple, list)):
        return f"{str(dtype).removeprefix('torch.')}[{', '.join(map(str, shape))}]"
    if isinstance(value, (Mapping, tuple, list)) and not depth:
        return "{...}" if isinstance(value, Mapping) else "[...]" if isinstance(value, list) else "(...)"
    if isinstance(value, Mapping):
        parts = [f"{_printed(k):.40}: {in_short(v, depth - 1)}" for k, v in list(value.items())[:_SHOWN]]
        return f"{{{_listed(parts, len(value))}}}"
    if isinstance(value, (tuple, list)):
        inside = _listed([in_short(v, depth - 1) for v in value[:_SHOWN]], len(value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    told = _OBJECT.sub(lambda m: f"<{m['name']}>", _printed(value))
    return told if len(told) <= LONGEST else f"{told[:LONGEST]}..."


def _printed(value: Any) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - nested too deep, too many digits, or whatever an object of the caller's raises
        return f"<{type(value).__name__}>"


def attribute(value: Any, name: str) -> Any:
    """An attribute of an object that a caller handed over; None where it has none, or raises when it is asked."""
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001 - a caller's own object may raise anything
        return None


def _listed(parts: list[str], count: int) -> str:
    return ", ".join([*parts, *([f"{count - len(parts):,} more"] if count > len(parts) else [])])


def without_dumps(text: str) -> str:
    """A message without printed arrays and addresses: "tensor of shape (3, 4)" for its rows, "<DataLoader>" for one.

    What is shorter than 40 characters stays as it is. The time grows with the text and not with its square.
    """
    if "(" not in text and " at 0x" not in text:
        return text
    out, at = [], 0
    for start, end, words in _dumps(text):
        out += [text[at:start], words]
        at = end
    return _OBJECT.sub(lambda m: f"<{m['name']}>", "".join([*out, text[at:]]))


def _dumps(text: str) -> Iterator[tuple[int, int, str]]:
    """From where to where an array is printed, and what it is."""
    at = 0
    while (found := _OPENS.search(text, at)) is not None:
        at = found.end()
        if text[at:at + 1] != "[":
            continue
        rows, shape = _rows(text, at)
        close = _CLOSE.match(text, rows)
        end = close.end() if close else len(text)
        if end - found.start() > _KEPT and len(shape) <= _DEEPEST:
            kind = "tensor" if "ensor" in found["kind"] else "array"
            tail = _TAIL.search(text[rows:end])
            dtype = tail["dtype"] if tail else "" if _FRACTION.search(text[at:rows]) else "int"
            told = _SHAPE.search(text[rows:end])
            cut = told is None and ("..." in text[at:rows] or rows >= len(text))
            of = told["shape"] if told else str(shape)
            yield found.start(), end, f"{dtype} {kind} of {'at least ' * cut}shape {of}".strip()
        at = max(end, at)


def _rows(text: str, at: int) -> tuple[int, tuple[int, ...]]:
    """Where the rows that begin at a bracket end, and how many there are of each depth, by the first of each."""
    depth = 0
    counts: list[int] = []
    open_: list[bool] = []
    for i in range(at, len(text)):
        if text[i] == "[":
            depth += 1
            if depth > _DEEPEST + 1:
                return i, tuple(counts)
            if len(open_) < depth:
                open_.append(True)
                counts.append(1)
        elif text[i] == "]":
            if depth <= len(open_):
                open_[depth - 1] = False
            depth -= 1
            if not depth:
                return i + 1, tuple(counts)
        elif text[i] == "," and open_[depth - 1]:
            counts[depth - 1] += 1
    return len(text), tuple(counts)
