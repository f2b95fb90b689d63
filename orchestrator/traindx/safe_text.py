"""Text from logs and code made safe to show: it is data, and must not format, colour or structure what quotes it.

What a person approves goes through `exact_lines` instead: nothing is left out of it.
"""

from __future__ import annotations

import re
import string

from traindx.unseen import IGNORABLE, escaped

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROL = re.compile(f"[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f{IGNORABLE}]")
_LINE_END = re.compile(r"\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
"""All that `str.splitlines` and viewers begin a line at."""
_HALF = re.compile(r"[\ud800-\udfff]")
"""Half of a pair: what Python makes of a byte in a file name that is no UTF-8. It cannot be written anywhere."""
_TICKS = re.compile(r"`+")
_FORMATS = re.compile(
    r"\\(?=[!-/:-@\[-`{-~]|$)|<(?=[A-Za-z/!?])|&(?=#?\w+;)|\](?=[(\[])|~{2,}|(?<=\S)~|\*+(?=\S)|(?<=\S)\*+"
    r"|(?<![^\W_])_+(?=\S)|(?<=\S)_+(?![^\W_])")
"""Markdown outside code: escapes, tags, entities, links and images, what is struck out or emphasised."""
_BEGINS = re.compile(r"#{1,6}(?=\s|$)|>|[-+*](?=[\s-]|$)|=(?==*$)|\d{1,9}[.)](?=\s|$)|\[(?=.*\]:)")
"""How a block begins: a heading, a quotation, a list, a rule, a definition that no viewer shows."""
_SPACE = re.compile(r"\s+")

MOST = 4000
"""Characters of one quoted text that are shown."""


def block(text: object, most: int = MOST) -> str:
    """Lines kept; terminal sequences, control and direction characters removed; bounded."""
    plain = _HALF.sub("\ufffd", str(text))
    plain = _CONTROL.sub("", _ANSI.sub("", _LINE_END.sub("\n", plain)))
    return plain if len(plain) <= most else plain[: most - 2].rstrip() + " …"


def line(text: object, most: int = MOST) -> str:
    """The same on one line, so that a quoted line break starts no heading, list or prompt."""
    return block(_SPACE.sub(" ", str(text)).strip(), most)


def exact_lines(text: str) -> list[str]:
    """The lines of an edit as `patching` writes them, all of them; what nobody sees stands as its escape."""
    return [escaped(row) for row in text.replace("\r\n", "\n").removesuffix("\n").split("\n")] if text else []


def inline(text: object, most: int = MOST) -> str:
    """`line` for Markdown: nothing in it formats, links, fetches or begins a block; what stands in single
    backticks stays code."""
    said = line(text, most)
    start = _BEGINS.match(said)
    parts, at = ([_signs(start[0])], start.end()) if start is not None else ([], 0)
    while (opening := _TICKS.search(said, at)) is not None:
        closing = next((m for m in _TICKS.finditer(said, opening.end()) if len(m[0]) == len(opening[0]) == 1), None)
        parts.append(_plain(said[at:opening.start()]))
        parts.append(said[opening.start():closing.end()] if closing is not None else "\\`" * len(opening[0]))
        at = opening.end() if closing is None else closing.end()
    return "".join([*parts, _plain(said[at:])])


def _plain(text: str) -> str:
    """Words outside code: what a viewer would take for formatting is escaped."""
    return _FORMATS.sub(lambda m: _signs(m[0]), text)


def _signs(text: str) -> str:
    return "".join(f"\\{c}" if c in string.punctuation else c for c in text)


def code(text: object, most: int = MOST) -> str:
    """`line` as code of Markdown: between more backticks than any run of it has."""
    said = line(text, most)
    ticks = "`" * (max((len(run) for run in _TICKS.findall(said)), default=0) + 1)
    pad = " " if said[:1] == "`" or said[-1:] == "`" else ""
    return f"{ticks}{pad}{said}{pad}{ticks}"


def fence(text: object) -> str:
    """A run of backticks longer than any in the text: nothing in it can close the block."""
    longest = max((len(run) for run in re.findall(r"`+", str(text))), default=0)
    return "`" * max(3, longest + 1)
