"""Takes what looks like a key, a token or a password out of a text before it is sent or kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MARK = "[redacted]"

_WHOLE = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\bsk-[A-Za-z0-9_-]{16,}|\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}"
    r"|\bglpat-[A-Za-z0-9_-]{16,}|\bhf_[A-Za-z0-9]{20,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{30,}"
    r"|\bxox[abeprs]-[A-Za-z0-9-]{10,}|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+"
    r"|(?<=://)[^/@\s:]+:[^/@\s]+(?=@)", re.DOTALL)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{8,}")
_NAMED = re.compile(
    r"(?i)((?:api[_-]?key|apikey|secret(?:[_-]?(?:access)?[_-]?key)?|access[_-]?token|auth[_-]?token|passw(?:or)?d"
    r"|private[_-]?key|(?:wandb|hf|openai|anthropic|comet|neptune)[_-](?:api[_-])?(?:key|token))[\"']?\s*[:=]\s*)"
    r"(\"[^\"\n]{4,}\"|'[^'\n]{4,}'|[^\s\"',;(){}\[\]]{8,})")


def redacted(text: str) -> str:
    """The text without secrets. A name that is assigned a call or a lookup (`os.environ[...]`) is code, and stays."""
    text = _WHOLE.sub(MARK, text)
    text = _BEARER.sub(lambda m: f"{m[1]} {MARK}", text)
    return _NAMED.sub(lambda m: m[0] if _is_code(m[2]) else f"{m[1]}{MARK}", text)


def _is_code(value: str) -> bool:
    return value[0] not in "\"'" and bool(re.fullmatch(r"[A-Za-z_][\w]*(?:\.\w+)+|None|True|False|[a-z_]{1,20}", value))


def redacted_json(value: Any, most: int = 20_000) -> Any:
    """JSON values with every text redacted and bounded, keys included; anything else as text."""
    if isinstance(value, str):
        text = redacted(value)
        return text if len(text) <= most else f"{text[:most]} [... {len(text) - most} more characters]"
    if isinstance(value, Mapping):
        return {str(redacted_json(str(k), most)): _entry(str(k), v, most) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [redacted_json(v, most) for v in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return redacted_json(str(value), most)


def redacted_alike(value: Any) -> Any:
    """The same JSON value, of the same shape and length of lists, with every text redacted."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        return {k: redacted_alike(v) for k, v in value.items()}
    return [redacted_alike(v) for v in value] if isinstance(value, list) else value


def _entry(key: str, value: Any, most: int) -> Any:
    """A value whose key says that it is a secret is taken out as if both were written in one line."""
    if isinstance(value, str) and MARK in redacted(f'{key}="{value}"'):
        return redacted(f'{key}="{value}"')[len(key) + 1:].strip('"')
    return redacted_json(value, most)
