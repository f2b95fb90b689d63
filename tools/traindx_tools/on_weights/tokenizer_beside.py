"""Tokens that the tokenizer beside a model names, and which of them its chat template writes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MOST_BYTES, MOST_TOKENS = 2**26, 2_000


@dataclass(frozen=True)
class TokensBeside:
    """Added and special tokens by id; those that each conversation holds."""

    names: Mapping[int, str]
    used: frozenset[int]


def tokens_beside(path: str) -> TokensBeside | None:
    """The tokenizer in the folder of a checkpoint; None where it has no template or adds no tokens."""
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    config = _table(folder, "tokenizer_config.json")
    template = _template(folder, config)
    names = dict(_added(folder, config)) if template else {}
    if not names or len(names) > MOST_TOKENS:
        return None
    end = _content(config.get("eos_token"))
    return TokensBeside(names, frozenset(i for i, name in names.items() if name and (name in template or name == end)))


def _template(folder: str, config: Mapping[str, Any]) -> str:
    """The chat template, in a file of its own or in the configuration; of several all of them."""
    try:
        with open(os.path.join(folder, "chat_template.jinja"), encoding="utf-8", errors="replace") as stream:
            return stream.read(2**20)
    except OSError:
        pass
    told = config.get("chat_template")
    if isinstance(told, list):
        return "\n".join(str(t.get("template", "")) for t in told if isinstance(t, Mapping))
    return told if isinstance(told, str) else ""


def _added(folder: str, config: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    tokens = _table(folder, "tokenizer.json").get("added_tokens")
    for token in tokens if isinstance(tokens, list) else ():
        if isinstance(token, Mapping) and isinstance(token.get("id"), int):
            yield token["id"], _content(token)
    decoder = config.get("added_tokens_decoder")
    for number, token in decoder.items() if isinstance(decoder, Mapping) else ():
        if str(number).isdigit():
            yield int(number), _content(token)
    for name, number in _table(folder, "added_tokens.json").items():
        if isinstance(number, int):
            yield number, name


def _content(token: object) -> str:
    found = token.get("content") if isinstance(token, Mapping) else token
    return found if isinstance(found, str) else ""


def _table(folder: str, name: str) -> Mapping[str, Any]:
    path = os.path.join(folder, name)
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > MOST_BYTES:
            return {}
        with open(path, encoding="utf-8") as stream:
            found = json.load(stream)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
