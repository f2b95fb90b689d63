"""What every value of a session is made of: a frozen model, and texts that are visible and bounded."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict


class Model(BaseModel):
    """Base of every value: frozen, and a field that is not declared is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, protected_namespaces=())

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, with the names that a file or a face shows ("for", not "for_")."""
        return self.model_dump(mode="json", by_alias=True)


def now() -> datetime:
    """The present moment in UTC."""
    return datetime.now(timezone.utc)


SHOWN_AT_MOST = 4_000
"""Characters of one text from a log, from code or from the web that are kept."""

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def quoted(value: object) -> object:
    """A text with control characters made visible and its length bounded; anything else as it is.

    A log may hold escape codes that repaint a terminal, or invisible characters that hide what a person approves.
    """
    if not isinstance(value, str):
        return value
    visible = _UNSAFE.sub(lambda m: f"\\x{ord(m[0]):02x}", value.replace("\r\n", "\n"))
    return visible if len(visible) <= SHOWN_AT_MOST else visible[:SHOWN_AT_MOST] + " [...]"


Quoted = Annotated[str, BeforeValidator(quoted)]
"""A text that may come from a log: visible and bounded."""


def _texts(value: object) -> object:
    """One text, several, an inline mapping or nothing, as a tuple of texts."""
    if value is None:
        return ()
    if isinstance(value, (str, Path)):
        return (str(value),) if str(value).strip() else ()
    if isinstance(value, Mapping):
        return (json.dumps(value, sort_keys=True, default=str),) if value else ()
    if isinstance(value, (list, tuple)):
        texts = (json.dumps(v, default=str) if isinstance(v, (Mapping, list)) else str(v) for v in value
                 if v is not None)
        return tuple(t for t in texts if t.strip())
    return value


Texts = Annotated[tuple[str, ...], BeforeValidator(_texts)]
"""Zero or more texts; a single text, a path, an inline mapping and None are accepted and normalized."""
