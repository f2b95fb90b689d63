"""The words of a shell text with their places, so that one can be replaced and the rest stays as it was typed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

_OPERATORS = frozenset(";&|()<>\n")


@dataclass(frozen=True)
class Word:
    """One word: what it means, and where it stands in the text."""

    text: str
    start: int
    end: int


def simple_commands(text: str) -> Iterator[list[Word]]:
    """The words of each simple command; what follows a redirection ends it, a line that goes on does not."""
    words: list[Word] = []
    at = 0
    while at < len(text):
        letter = text[at]
        if text.startswith("\\\n", at):
            at += 2
        elif letter in _OPERATORS:
            if words:
                if letter in "<>" and words[-1].text.isdigit() and words[-1].end == at:
                    words.pop()  # the number of a stream: `2>`
                yield words
            words = []
            at = _past_target(text, at) if letter in "<>" else at + 1
        elif letter.isspace():
            at += 1
        elif letter == "#" and (not at or text[at - 1].isspace()):
            at = text.find("\n", at) if "\n" in text[at:] else len(text)
        else:
            end = _end_of_word(text, at)
            words.append(Word(_meaning(text[at:end]), at, end))
            at = end
    if words:
        yield words


def _past_target(text: str, at: int) -> int:
    while at < len(text) and (text[at] in "<>&" or text[at] in " \t"):
        at += 1
    return _end_of_word(text, at)


def _end_of_word(text: str, at: int) -> int:
    quote = ""
    while at < len(text):
        letter = text[at]
        if quote:
            if letter == "\\" and quote == '"':
                at += 1
            elif letter == quote:
                quote = ""
        elif letter == "\\":
            if text.startswith("\\\n", at):
                break
            at += 1
        elif letter in "'\"":
            quote = letter
        elif letter.isspace() or letter in _OPERATORS:
            break
        at += 1
    return min(at, len(text))


def _meaning(raw: str) -> str:
    try:
        return "".join(shlex.split(raw))
    except ValueError:
        return raw


def spliced(text: str, start: int, end: int, new: str) -> str:
    """The text with another between two places."""
    return text[:start] + new + text[end:]
