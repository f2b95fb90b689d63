"""Nested configuration made flat: `{"optim": {"lr": 1e-3}}` becomes `{"optim.lr": 1e-3}`; scalars read from text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

MOST_KEYS = 20_000
MOST_VISITED = 100_000
DEEPEST = 32
_LONGEST_VALUE = 2_000
_MOST_ITEMS = 256

_EXPONENT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+$")
_WORDS = {"true": True, "false": False, "none": None, "null": None, "~": None}
_INTERNAL_KEYS = frozenset({"_wandb", "wandb_version"})


def flat(nested: Any) -> dict[str, Any]:
    """Dotted keys and plain values (numbers, text, booleans, None, lists of these) of a nested mapping.

    wandb's `{"value": ..., "desc": ...}` is unwrapped. At most `MOST_KEYS` keys from `DEEPEST` levels; a list of
    mappings gets its index as a key.
    """
    result: dict[str, Any] = {}
    for number, (key, value) in enumerate(_walk("", nested, 0)):
        if len(result) >= MOST_KEYS or number >= MOST_VISITED:
            break
        if key and not isinstance(value, Mapping):
            result[key] = _plain(value)
    return result


def _walk(prefix: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Every node, inner ones as empty mappings: a caller can count them (aliases make few nodes look like many)."""
    if isinstance(value, Mapping) and set(value) <= {"value", "desc"} and "value" in value:
        value = value["value"]
    children = list(_children(value))
    if not children:
        yield prefix, value
        return
    yield prefix, {}
    for key, inner in children if depth < DEEPEST else ():
        if depth > 0 or key not in _INTERNAL_KEYS:
            yield from _walk(_joined(prefix, key), inner, depth + 1)


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((str(key), inner) for key, inner in value.items())
    elif isinstance(value, (list, tuple)) and any(isinstance(v, (Mapping, list, tuple)) for v in value):
        yield from ((str(index), inner) for index, inner in enumerate(value[:_MOST_ITEMS]))


def _joined(prefix: str, key: str) -> str:
    key = key[:200]
    return f"{prefix}.{key}" if prefix else key


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value[:_MOST_ITEMS]]
    if isinstance(value, str):
        return float(value) if _EXPONENT.match(value) else value[:_LONGEST_VALUE]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return str(value)[:_LONGEST_VALUE]


def scalar(text: str) -> Any:
    """The value that a piece of text stands for: a Python literal, true/false/none, else the text itself."""
    text = text.strip()
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if len(text) > _LONGEST_VALUE:
        return text[:_LONGEST_VALUE]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return text
    return value if isinstance(value, (bool, int, float, str, list, tuple, dict)) else text
