"""A JSON schema from an example of the answer, so that what a prompt shows and what is enforced are one text.

In an example `"a | b"` is a choice, `"... or null"` may be null, any other text stands for a text, 1 for an integer,
0.0 for a number, true for a truth value; a list shows its one kind of entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
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


def shape(schema: Mapping[str, Any]) -> str:
    """The schema as a reader needs it, in a quarter of its length: `{status: found | not_found, unknown: [text]}`."""
    if "anyOf" in schema:
        return " or ".join(shape(s) for s in schema["anyOf"])
    kinds = schema.get("type", "string")
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if kinds == "object":
        return "{" + ", ".join(f"{k}: {shape(s)}" for k, s in schema.get("properties", {}).items()) + "}"
    if kinds == "array":
        return f"[{shape(schema.get('items', {}))}]"
    plain = kinds if isinstance(kinds, str) else " or ".join(kinds)
    return str(schema.get("description") or plain.replace("string", "text"))


_KINDS: dict[str, tuple[type, ...]] = {"object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,),
                                       "integer": (int,), "number": (int, float), "null": (type(None),)}


def complaints(value: Any, schema: Mapping[str, Any], where: str = "answer") -> list[str]:
    """All that is wrong with a value, each with its place; empty where it has the form.

    Knows what schemas of our own use: type, enum, anyOf, properties, required, additionalProperties, items, bounds.
    """
    if "anyOf" in schema:
        each = [complaints(value, s, where) for s in schema["anyOf"]]
        return [] if any(not c for c in each) else min(each, key=len)
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is_kind(value, k) for k in kinds):
        return [f"{where}: expected {' or '.join(kinds)}, got {str(value)[:60]!r}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where}: expected one of {', '.join(map(str, schema['enum']))}, got {str(value)[:60]!r}"]
    return [*_object(value, schema, where), *_array(value, schema, where), *_bounds(value, schema, where)]


def _is_kind(value: Any, kind: str) -> bool:
    return isinstance(value, _KINDS[kind]) and (not isinstance(value, bool) or kind == "boolean")


def _object(value: Any, schema: Mapping[str, Any], where: str) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    known = schema.get("properties", {})
    yield from (f"{where}: {name} is missing" for name in schema.get("required", ()) if name not in value)
    if schema.get("additionalProperties") is False:
        yield from (f"{where}: there is no {name}" for name in value if name not in known)
    for name, inner in known.items():
        if name in value:
            yield from complaints(value[name], inner, f"{where}.{name}")


def _array(value: Any, schema: Mapping[str, Any], where: str) -> Iterator[str]:
    if not isinstance(value, list):
        return
    if len(value) > schema.get("maxItems", len(value)):
        yield f"{where}: at most {schema['maxItems']} entries, got {len(value)}"
    for number, entry in enumerate(value):
        yield from complaints(entry, schema.get("items", {}), f"{where}[{number}]")


def _bounds(value: Any, schema: Mapping[str, Any], where: str) -> Iterator[str]:
    if isinstance(value, (int, float)) and value < schema.get("minimum", value):
        yield f"{where}: at least {schema['minimum']}, got {value}"
