"""Offsets into a file of tokens are one off, or a few, in a stretch of them.

Packed documents lie one behind the other, and an array says where each begins. From some entry on each document lacks
its first token and ends with that of the next: a header that was counted, a document that was left out of one of both
files. Lengths and the last entry are right, and nothing fails.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.offsets import BROKEN, FEWEST, HOLDS, REACH, STRETCH, Off, off, offsets_of
from traindx_tools.on_data.places import percent, place, short
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="D209",
    name="offsets-off",
    title="Offsets into a file of tokens point beside where documents begin",
    severity=Severity.HIGH,
    sees="arrays of growing numbers that end where a file of tokens does, and the tokens around each place",
    matters="Each document lacks its first token and has one of its neighbour's: what it begins with is never learned.",
    alike=("Offsets behind the last token of a document, in all entries.", "Documents without a token of their own."),
    confirm=("Print the tokens around an entry before the stretch and around one within it.",),
    thresholds={
        "fewest": Threshold(FEWEST, "entries", "of the array"),
        "stretch": Threshold(STRETCH, "entries", "that are off, and that are not"),
        "reach": Threshold(REACH, "tokens", "by which they are off at most"),
        "holds": Threshold(HOLDS, "share of the entries", "elsewhere, and in the stretch after a move, at the mark"),
        "broken": Threshold(BROKEN, "share of the entries", "of the stretch at the mark as they are, at most"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all stretches and moves"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each array of offsets."""
    shards = [s for d in view.sets for s in d.shards if s.rows]
    for one in offsets_of(shards):
        found = off(one, float(view.comparisons))
        if found is not None:
            yield _finding(found)


def _finding(found: Off) -> Finding:
    of, stretch = found.offsets, found.stretch
    way = "high" if found.by > 0 else "low"
    return RULE.finding(
        f"entries {stretch.start}..{stretch.end - 1} of {of.field} in {short(of.shard)} are {abs(found.by)} too {way}: "
        f"token {found.mark} stands {_where(found.usual)} in {percent(found.others)} of the other entries, and there "
        f"in {percent(found.here)} of these, but {_where(found.usual - found.by)} ({short(of.into)})",
        place(of.shard, of.field),
        of.shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": of.field, "by": found.by, "mark": found.mark, "rows": (stretch.start, stretch.end - 1),
                  "others": found.others, "here": found.here, "kind": "offsets", "shard": short(of.shard)},
    )


def _where(move: int) -> str:
    if move == 0:
        return "at the place that they say"
    return f"{abs(move)} {'behind' if move > 0 else 'before'} it"
