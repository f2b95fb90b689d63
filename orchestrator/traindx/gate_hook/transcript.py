"""The last thing that the assistant said before a question or an answer, from the host's record of the conversation."""

from __future__ import annotations

import json
import os

READ_AT_MOST = 4 * 2**20
"""Bytes from the end of the record."""


def last_said(path: str) -> str:
    """The assistant's text since the last prompt of the person; empty where the record cannot be read."""
    said: list[str] = []
    try:
        with open(path, "rb") as record:
            record.seek(max(0, os.fstat(record.fileno()).st_size - READ_AT_MOST))
            lines = record.read().split(b"\n")
    except OSError:
        return ""
    for line in reversed(lines):
        entry = _entry(line)
        if entry is None or entry.get("isSidechain"):
            continue
        message = entry.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if entry.get("type") == "assistant":
            said[:0] = _texts(content)
        elif entry.get("type") == "user" and said and not _is_result(content):
            break
    return "\n".join(said)


def _entry(line: bytes) -> dict[str, object] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def _texts(content: object) -> list[str]:
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    return [str(b.get("text", "")) for b in blocks if isinstance(b, dict) and b.get("type") == "text"]


def _is_result(content: object) -> bool:
    return isinstance(content, list) and any(isinstance(b, dict) and b.get("type") == "tool_result" for b in content)
