"""A JSON schema from an example of the answer, so that what a prompt shows and what is enforced are one text.

In an example `"a | b"` is a choice, `"... or null"` may be null, any other text stands for a text, 1 for an integer,
0.0 for a number, true for a truth value; a list shows its one kind of entry.
"""

from __future__ import annotations

import re
from typing import Any

_CHOICE = re.compile(r"[\w.-]+( [\w.-]+)*( \| [\w.-]+( [\w.-]+)*)+")


def schema_from_example(example: Any) -> dict[str, Any]:
    """The JSON schema: every key of an object is required and no other allowed. Raises ValueError."""
    if isinstance(example, bool):
        return {"type": "boolean"}
    if isinstance(example, int):
        return {"type": "integer"}
    if isinstance(example, float):
        return {"type": "number"}
    if isinstance(example, str):
        return _text(example)
    if isinstance(example, dict):
        return {"type": "object", "properties": {k: schema_from_example(v) for k, v in example.items()},
                "required": list(example), "additionalProperties": False}
    if isinstance(example, list) and len(example) == 1:
        return {"type": "array", "items": schema_from_example(example[0])}
    raise ValueError(f"expected an object, a text, a number or a list with one entry, got {example!r}")


def _text(example: str) -> dict[str, Any]:
    if _CHOICE.fullmatch(example):
        return {"type": "string", "enum": example.split(" | ")}
    if example.endswith(" or null"):
        return {"type": ["string", "null"], "description": example}
    return {"type": "string", **({"description": example} if example else {})}
