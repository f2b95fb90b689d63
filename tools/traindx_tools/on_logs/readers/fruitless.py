"""Lines of which nothing is ever made and in each of which another name stands: they are worked out no more.

A line is taken apart into words that say something to the reader (names of metrics, groups, counters, units, words of
notes) and others. Where very many lines that differ in the others alone gave nothing, the next one gives nothing
either. A frame in which one line gave a value is worked out line by line for ever.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from traindx_tools.on_logs.readers import counters, names, notes
from traindx_tools.on_logs.readers.languages import in_english
from traindx_tools.on_logs.readers.line_names import STOP
from traindx_tools.on_logs.readers.line_plans import NOTHING, Plan
from traindx_tools.on_logs.readers.numbers import unit

TRIED = 200
"""Texts of one frame that gave nothing, after which its like are worked out no more: where one of a hundred gave
something, all of so many would give nothing once in seven logs; of one of fifty, once in sixty."""
TRIED_ALIKE = 2_000
"""The same of texts that have nothing in common but the words that say something, in whatever order of the others."""
_MOST = 20_000
"""Frames that are counted."""
_WORD = names.WORDS
_SPEAKS = re.compile("|".join(sorted({re.escape(need.split()[0]) for needs in notes.NEEDS.values() for need in needs})))
"""What a word holds that may make a note of its line."""
_SAYING = frozenset(
    {part for alias in names.ALIASES for part in alias.split("_")} | {*names.GROUPS} | names.IGNORED | names.SCOPES
    | {part for word in (*counters.STEP_WORDS, *counters.EPOCH_WORDS, *counters.RANK_WORDS) for part in word.split("_")}
    | notes.WORDS
    | {"loss", "losses", "acc", "grad", "grads", "gradients", "norm", "mem", "memory", "ram", "vram", "best", "lowest",
       "highest", "target", "steps", "iterations", "iters", "updates", "epochs", "batches", "episodes"})
"""Words that names of metrics, groups and counters are made of."""
_UNMEANT = "w"
_DROPPED = "\3"
"""Marks what is counted of the texts of a frame that gave values for which there was no place."""
Outcome = tuple[Plan, "str | None"]


@lru_cache(maxsize=50_000)
def _said(word: str) -> str:
    """A word that says something to the reader, in lower case; "" for any other."""
    low = word.lower()
    says = (low in _SAYING or low in STOP or unit(word, False) is not None or unit(word, True) is not None
            or _SPEAKS.search(low) is not None or in_english(word) != word)
    return low if says else ""


def _framed(found: re.Match[str]) -> str:
    return _said(found.group()) or _UNMEANT


@dataclass
class Fruitless:
    """What is known of frames of lines: how many texts of each gave nothing, and of what kind of note they are."""

    _tried: dict[str, int] = field(default_factory=dict)
    """Negative for a frame of which a text gave something."""
    _kind: dict[str, str | None] = field(default_factory=dict)

    def frames(self, parts: Sequence[str], beside: str = "") -> tuple[str, ...]:
        """What a text has in common with others, closely and loosely; () for one that is worked out in any case.

        `beside`: what is known of the line besides its text.
        """
        text = "\0".join(parts[::2])
        if not text.isascii() or "%|" in text or len(text) > notes.MAX_TEXT:
            return ()
        close = _WORD.sub(_framed, text)
        loose = " ".join(w for w in _WORD.findall(close) if w != _UNMEANT and w not in STOP)
        return f"{beside}\1{close}", f"{beside}\2{loose}"

    def outcome(self, frames: tuple[str, ...]) -> Outcome | None:
        """What is to be expected of a text with these frames; None where it is to be worked out."""
        dropped = (f"{frames[0]}{_DROPPED}",) if frames else ()
        for frame, enough in zip((*frames, *dropped), (TRIED, TRIED_ALIKE, TRIED), strict=False):
            if self._tried.get(frame, 0) >= enough:
                return NOTHING, self._kind[frame]
        return None

    def gave(self, frames: tuple[str, ...], outcome: Outcome) -> None:
        """Notes what came of a text that was worked out."""
        plan, kind = outcome
        for frame in frames:
            self._note(frame, kind, plan is NOTHING)

    def was_dropped(self, frames: tuple[str, ...]) -> None:
        """Notes that no value of a text has a place: there are too many names already."""
        for frame in frames[:1]:
            self._note(f"{frame}{_DROPPED}", None, True)

    def _note(self, frame: str, kind: str | None, nothing: bool) -> None:
        tried = self._tried.get(frame)
        if tried is None and len(self._tried) >= _MOST:
            return
        same = nothing and (tried is None or self._kind.get(frame) == kind)
        self._kind.setdefault(frame, kind)
        self._tried[frame] = (tried or 0) + 1 if same and (tried or 0) >= 0 else -1
