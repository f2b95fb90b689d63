"""What a viewer of Markdown hides of a message: nothing of that may count as shown to the person who approves.

A message that holds any of it is sent back, for no program knows what each host's viewer makes of it. Code is told from
words only where every viewer agrees: fences that open and close alike, backticks that pair on their own line. Where the
message is written otherwise, all of it is taken for words. The standard library alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.unseen import unseen_in

_FENCE = re.compile(r"(?P<indent> *)(?P<run>`{3,}|~{3,})(?P<info>.*)$")
_LIKE_A_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(?:`{3,}|~{3,})")
_LANGUAGE = re.compile(r"[ \t]*[\w+.#-]*[ \t]*")
_DEEPEST = 3
"""Spaces before a fence; behind more of them a viewer may see code by indentation, or words of a list."""
_RUN = re.compile(r"\\?`+")

_HIDDEN: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("HTML", re.compile(r"<(?:!--|!\[CDATA\[|![A-Za-z]|\?|/?[A-Za-z][\w-]*(?:[\s/](?:[^>\n]|\n(?!\s*\n))*)?>)"
                        r"|^[ \t>*+.)\d-]*</?[A-Za-z][\w-]*(?:[ \t/]|$)", re.MULTILINE)),
    ("a link's definition or a footnote", re.compile(
        r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*\[(?:\^[^\]\n]+\]:|(?:[^\[\]\\]|\\.)+\]:[ \t]*(?:\n[ \t]*)?"
        r"(?:<[^\n>]*>|[^\s<]\S*)(?:[ \t]*$|[ \t]+(?:\"[^\"\n]*(?:\"[ \t]*)?$|'[^'\n]*(?:'[ \t]*)?$"
        r"|\([^()\n]*(?:\)[ \t]*)?$)))", re.MULTILINE)),
    ("a link with a title", re.compile(r"\]\((?![^\s()<>`]*\))")),
    ("a picture", re.compile(r"!\[")),
)
_STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""What steers a terminal or turns a line round; a joiner within a letter or a picture is none of it."""
_TABLE = re.compile(r"^[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$", re.MULTILINE)


def hidden_in(text: str) -> tuple[str, ...]:
    """What a viewer may hide of a whole message, each kind once, in words; empty where all of it is shown."""
    words = _words(text)
    kinds = [f"{kind} ({match[0].strip()[:40]!r})" for kind, pattern in _HIDDEN
             for match in [pattern.search(words)] if match is not None]
    info = next((row.strip() for row in words.split("\n") if _hides_an_info(row)), None)
    if info is not None:
        kinds.append(f"words behind the marks of a fence ({info[:40]!r})")
    if steering := unseen_in("".join(_STEERS.findall(text.replace("\r\n", "\n")))):
        kinds.append(f"what these characters do ({', '.join(steering[:3])})")
    return tuple(kinds)


def table_in(text: str) -> bool:
    """True where the text holds a table: a viewer drops the cells of a row that the head has no columns for."""
    return any("|" in match[0] for match in _TABLE.finditer(_words(text)))


def _hides_an_info(row: str) -> bool:
    fence = _FENCE.match(row)
    if fence is None or _LANGUAGE.fullmatch(fence["info"]):
        return False
    return fence["run"][0] == "~" or "`" not in fence["info"]


def _words(text: str) -> str:
    """The message without what is code to every viewer; the marks of fences stay."""
    rows = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    outside = _outside_fences(rows)
    if outside is None:
        return "\n".join(rows)
    out: list[str] = []
    block: list[str] = []
    for row in [*outside, ""]:
        if row.strip() and _LIKE_A_FENCE.match(row) is None:
            block.append(row)
            continue
        out += [*_without_spans(block), row]
        block = []
    return "\n".join(out[:-1])


def _outside_fences(rows: list[str]) -> list[str] | None:
    """The rows without the bodies of fences; None where a viewer might pair their marks in another way."""
    out: list[str] = []
    opened: re.Match[str] | None = None
    for row in rows:
        fence = _FENCE.match(row)
        if opened is None:
            out.append(row)
            if fence is not None and not (fence["run"][0] == "`" and "`" in fence["info"]):
                opened = fence
            elif _LIKE_A_FENCE.match(row):
                return None
        elif fence is not None and _closes(fence, opened):
            if fence["indent"] != opened["indent"]:
                return None
            out.append(row)
            opened = None
        elif row.strip() and not row.startswith(opened["indent"]):
            return None
        elif len(opened["indent"]) > _DEEPEST:
            if fence is not None:
                return None
            out.append(row)
    return out if opened is None else None


def _closes(fence: re.Match[str], opened: re.Match[str]) -> bool:
    return (fence["run"][0] == opened["run"][0] and len(fence["run"]) >= len(opened["run"])
            and not fence["info"].strip())


def _without_spans(block: list[str]) -> Iterator[str]:
    """Rows of one block without their code, where all backticks pair within their own row."""
    made = [_spanless(row) for row in block]
    yield from block if None in made else (row or "" for row in made)


def _spanless(row: str) -> str | None:
    out, at = "", 0
    while (opening := _RUN.search(row, at)) is not None:
        closing = next((m for m in re.finditer(r"`+", row[opening.end():]) if len(m[0]) == len(opening[0])), None)
        if opening[0][0] == "\\" or closing is None:
            return None
        out += row[at:opening.start()] + "`code`"
        at = opening.end() + closing.end()
    return out + row[at:]
