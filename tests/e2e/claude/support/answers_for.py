"""Answers in the forms that the prompts promise, complete, with what a test wants in them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from scripted_api import Text, Use, answer

from traindx.agents import load_agents


def blank(schema: dict[str, Any]) -> Any:
    """The emptiest value that a schema allows."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if isinstance(kind, list):
        return None
    if kind == "object":
        return {k: blank(v) for k, v in schema["properties"].items()}
    return {"string": "", "integer": 1, "number": 0.0, "boolean": True, "array": []}[str(kind)]


def filled(schema: dict[str, Any], given: Any) -> Any:
    """What is given, with every missing key blank."""
    if isinstance(given, dict):
        return {k: filled(v, given[k]) if k in given else blank(v) for k, v in schema["properties"].items()}
    return [filled(schema["items"], g) for g in given] if isinstance(given, (list, tuple)) else given


def said(agent: str, **given: Any) -> Use:
    """The answer of an agent in its own form."""
    return answer(filled(load_agents()[agent].output_schema, given))


def doubt(relation: str = "supports", **given: Any) -> Use:
    """The adversary's answer."""
    return answer({"relation": relation, "why": "", "rivals": [], "disproofs": [], **given})


def specialist(agent: str, *uses: Use, **given: Any) -> Callable[[Mapping[str, Any]], Any]:
    """A specialist that uses these tools and reports: as its last words, or over the API in the form."""
    report = filled(load_agents()[agent].output_schema, given)

    def step(body: Mapping[str, Any]) -> Any:
        done = sum(m["role"] == "assistant" for m in body["messages"])
        if done < len(uses):
            return uses[done]
        offered = {t["name"] for t in body["tools"]}
        return answer(report) if "StructuredOutput" in offered else Text(f"My report:\n{json.dumps(report)}")

    return step
