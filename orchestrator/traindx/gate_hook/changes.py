"""What an option of a diagnosis changes: the places that it states, and the new text where it shows one.

A place counts where a change is stated: first in the option (`A: train.py:3: EPS = 1e-6`), first on a line that begins
with `change:`, or in a diff. A path that is mentioned anywhere else is only mentioned.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from traindx.gate_hook.state import Bound, Place

PLACE = re.compile(r"(?<![\w/.:-])(?P<path>(?:[\w.@+-]+/)*[\w.@+-]*\.\w+):(?P<first>\d{1,7})"
                   r"(?:[ \t]?[-\u2013][ \t]?(?P<last>\d{1,7}))?(?!\d)")
NEW = re.compile(r"(?<![\w/.:-])(?P<path>(?:[\w.@+-]+/)*[\w.@+-]*\.\w+)`?[ \t]*\(new(?: file)?\)", re.IGNORECASE)
_CHANGE = re.compile(r"^[-*>#+_ \t]*changes?[*_]*[ \t]*:[*_]*[ \t]*(?P<said>.*)$", re.IGNORECASE | re.MULTILINE)
_HEAD = re.compile(r"[ \t]*(?:[^()\n]{0,60}\))?[ \t:.*_\u2013\u2014-]*")
_JOINED = re.compile(r"[ \t]*(?:,|;|&|\band\b)[ \t]*(?:and\b[ \t]*)?")
_OPENING = re.compile(r"[ \t`*_(\[]*")
_CLOSING = re.compile(r"[`*_)\]]*")
_VERB = r"(?:becomes?|with|by|to|gets?|is[ \t]replaced[ \t]by)\b"
_GOES_ON = re.compile(rf"[ \t]*(?:$|[:.;,(\u2013\u2014]|->|\u2192|-[ \t]|{_VERB})", re.MULTILINE)
_INTRODUCED = re.compile(rf"[ \t:.;,(\u2013\u2014>\u2192-]*(?:{_VERB})?[ \t:]*")
_END = re.compile(r"\.?(?:\s+(?=Verif)|\n|$)|\.\s|;\s")
_CODE = re.compile(r"(?:[\w.\[\]'\", ()*:]+[ \t]*(?:[-+*/|&%@]|//|\*\*)?=(?!=)[ \t]*\S|[\w.]+\(.*\)$)")
_QUOTED = re.compile(r"`([^`\n]+)`")
_FENCE = re.compile(r"(?P<mark>```|~~~)(?P<kind>\w*)[ \t]*\n(?P<body>.*?)\n?[ \t]*(?P=mark)", re.DOTALL)
_HUNK = re.compile(r"@@ -(?P<line>\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")


class Changes(NamedTuple):
    """The places of an option, and the texts that they may get."""

    places: tuple[Place, ...]
    bound: tuple[Bound, ...]


def changes_in(option: str, workspace: str) -> Changes:
    """What the text of one option, after its mark, states as its change."""
    found: dict[Place, None] = {}
    bound: list[Bound] = []
    in_diffs: set[str] = set()
    last: list[Place] = []
    for kind, _, text in sorted(_statements(option), key=lambda s: s[1]):
        if kind == "diff":
            blocks = _of_diff(text, last, workspace)
            found |= dict.fromkeys((one.path, one.first, one.last) for one in blocks)
            in_diffs |= {one.path for one in blocks}
            bound += blocks
        elif kind == "code":
            bound += [Bound(*place, tuple(text.split("\n"))) for place in last]
        else:
            last, said = _leading(text, workspace)
            found |= dict.fromkeys(last)
            lines = _shown(said)
            bound += [Bound(*place, lines) for place in last if lines and place[2] >= place[1]]
    exact = {(b.path, b.first, b.last) for b in bound}
    return Changes(tuple(p for p in found if p[0] not in in_diffs or p in exact), tuple(bound))


def _statements(option: str) -> Iterator[tuple[str, int, str]]:
    """(what it is, where it begins, its text)"""
    fences = list(_FENCE.finditer(option))
    for fence in fences:
        kind = fence["kind"].lower()
        if kind in ("diff", "patch"):
            yield "diff", fence.start(), fence["body"]
        elif kind not in ("bash", "sh", "shell", "console") and not _follows_verify(option, fence.start()):
            yield "code", fence.start(), fence["body"]
    within = [(f.start(), f.end()) for f in fences]
    head = _HEAD.match(option)
    at = head.end() if head is not None else 0
    first = option[at:].lstrip("\n")
    yield "words", 0, re.split("```|~~~", first, maxsplit=1)[0].split("\n", 1)[0]
    for match in _CHANGE.finditer(option):
        if not any(a <= match.start() < b for a, b in within):
            yield "words", match.start() + 1, match["said"]


def _follows_verify(option: str, at: int) -> bool:
    """True for a fence of commands: the line before it says that they verify."""
    before = option[:at].rstrip().rsplit("\n", 1)[-1]
    return "verif" in before.lower()


def _leading(text: str, workspace: str) -> tuple[list[Place], str]:
    """The places that a statement begins with, and what it says of them; none where it goes on as a sentence."""
    places: list[Place] = []
    at = 0
    while True:
        at = _end(_OPENING, text, at)
        new, old = NEW.match(text, at), PLACE.match(text, at)
        match = new or old
        if match is None:
            break
        place = _new(match, workspace) if new is not None else _old(match, workspace)
        after = _end(_CLOSING, text, match.end())
        if not _JOINED.match(text, after) and not _GOES_ON.match(text, after):
            break
        places += [place] if place is not None else []
        at = after
        joined = _JOINED.match(text, after)
        if joined is None or not (NEW.match(text, _end(_OPENING, text, joined.end()))
                                  or PLACE.match(text, _end(_OPENING, text, joined.end()))):
            break
        at = joined.end()
    return places, text[at:]


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found is not None else at


def _shown(said: str) -> tuple[str, ...]:
    """The new text that words after a place show: in backticks, or as plain code."""
    begin = _end(_INTRODUCED, said, 0)
    end = _END.search(said, begin)
    words = said[begin:end.start() if end is not None else len(said)].strip()
    quoted = [q for q in _QUOTED.findall(words) if not PLACE.fullmatch(q)]
    if quoted:
        return tuple(quoted)
    return (words,) if _CODE.match(words) else ()


def _old(match: re.Match[str], workspace: str) -> Place | None:
    path = inside(match["path"], workspace)
    first, last = int(match["first"]), int(match["last"] or match["first"])
    return (path, first, last) if path is not None and last >= first > 0 else None


def _new(match: re.Match[str], workspace: str) -> Place | None:
    path = inside(match["path"], workspace)
    return (path, 1, 0) if path is not None and not os.path.lexists(os.path.join(workspace, path)) else None


def inside(path: str, workspace: str) -> str | None:
    """The path relative to the workspace; None where it leaves it."""
    relative = os.path.normpath(os.path.relpath(os.path.join(workspace, path), workspace))
    return None if relative.startswith("..") or os.path.isabs(relative) else relative.replace(os.sep, "/")


def _of_diff(body: str, last: list[Place], workspace: str) -> list[Bound]:
    """The changes of a diff: each block of lines that go, and the lines that come in their place.

    Without headers it is about the place that was stated before it.
    """
    made: list[Bound] = []
    path, line = last[0][:2] if last else (None, 0)
    gone, come, is_new = 0, [], False
    for text in [*body.split("\n"), " "]:
        hunk = _HUNK.match(text)
        if text[:1] in "-+" and text[:4] not in ("--- ", "+++ "):
            gone += text[0] == "-"
            come += [text[1:]] if text[0] == "+" else []
            continue
        if (gone or come) and path is not None and line > 0:
            made.append(Bound(path, line, line + gone - 1, tuple(come)))
        line, gone, come = line + gone, 0, []
        if text.startswith("+++ "):
            path = inside(text[4:].split("\t")[0].strip().removeprefix("b/"), workspace)
            path = None if is_new and path is not None and os.path.lexists(os.path.join(workspace, path)) else path
        elif hunk is not None:
            line = int(hunk["line"]) or int(is_new)
        elif text.startswith("--- "):
            is_new = text[4:].split("\t")[0].strip() == "/dev/null"
        else:
            line += 1
    return made
