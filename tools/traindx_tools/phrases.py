"""Sentences with measured values in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_SLOT = re.compile(r"\{(\w+)(?:\|([^{}]*))?\}")


def show(value: Any) -> str:
    """A value as a person writes it: four significant digits for floats, text as it is, lists with commas."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (tuple, list)):
        return ", ".join(show(v) for v in value)
    return str(value)


def fill(template: str, measured: Mapping[str, Any]) -> str:
    """Replaces `{key}` by the measured value and `{key|words}` by the words where nothing was measured.

    A key that was not measured and has no words becomes its own name in words, so that a sentence stays a sentence.
    """

    def value(match: re.Match[str]) -> str:
        found = measured.get(match[1])
        if found is not None:
            return show(found)
        return match[2] if match[2] is not None else match[1].replace("_", " ")

    return _SLOT.sub(value, template)
