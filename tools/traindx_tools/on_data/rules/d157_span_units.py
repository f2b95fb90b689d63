"""Spans of one part are counted otherwise: in bytes, in units of UTF-16, from 1 on.

In all other parts spans begin and end where words do, or words that the row quotes stand at the place that it says. In
one they cut words, or others stand there, and read in another unit they do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.cuts import Cut, cuts_of, in_two, told_by_another_field
from traindx_tools.on_data.places import percent, place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, paired_tail
from traindx_tools.on_data.stretches import heaviest, log_chance
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.text_quotes import quotes_of
from traindx_tools.on_data.text_spans import UNITS, Spans, spans_of
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

FITS, LOST = 0.85, 0.5
FEWEST = 20
LONGEST = 0.6

RULE = Rule(
    id="D157",
    name="span-units",
    title="Spans of one part of the texts are counted otherwise",
    severity=Severity.HIGH,
    sees="whether spans begin and end at the edges of words, or words that a row quotes stand at their stated place, "
         "as they are and read in other units, by part",
    matters="The model learns labels of cut words, in this part alone, and is scored on them.",
    alike=("Spans within words (suffixes, subwords): they cut words in all parts.",
           "Offsets in bytes throughout, as some tools want them: a remark."),
    confirm=("Print text[start:end] of ten rows of the part, and the same of text.encode().",),
    thresholds={
        "fits": Threshold(FITS, "share of the spans", "that begin and end with words in all others, and here after"),
        "lost": Threshold(LOST, "of that share", "at most, here as they are, of those that the unit changes"),
        "spans": Threshold(FEWEST, "spans", "of the part that the unit changes"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all parts and units"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each part and pair of fields."""
    for data in view.sets:
        group = tuple(s for s in data.shards if s.columns and s.rows)
        for spans in (*spans_of(group), *quotes_of(group)) if group else ():
            yield from _of_spans(data, group, spans, view.comparisons)


def _of_spans(data: DataSet, group: Sequence[Shard], spans: Spans, comparisons: int) -> Iterator[Finding]:
    cuts = list(cuts_of(group, data.labels))
    cuts += in_two(group) if spans.quoted else []  # whether words stand somewhere is exact: of two parts one shows it
    tries = comparisons * len(UNITS) * max(1, sum(len(c.names) for c in cuts))
    told: set[int] = set()
    for unit in range(1, len(UNITS)):
        changed = spans.changed[unit]
        for cut in cuts:
            member = np.array([cut.member[s][r] for s, r in zip(spans.shard, spans.row, strict=True)])
            for part in range(len(cut.names)):
                inside = member == part
                first = int(np.argmax(inside))
                if first not in told and _is_otherwise(spans, unit, inside, tries):
                    told.add(first)
                    yield _finding(group, spans, unit, inside, cut.told(part), cut, part)
            several = [] if told else _several(spans, unit, member, tries)
            for part in several:
                told.add(int(np.argmax(member == part)))
                yield _finding(group, spans, unit, member == part, cut.told(part), cut, part,
                               others=~np.isin(member, several))
        if not told and changed.any():
            yield from _stretch(group, spans, unit, tries)
        if told:
            return
    yield from _throughout(group, spans, told)


def _is_otherwise(spans: Spans, unit: int, inside: Array, tries: float) -> bool:
    here, own, changed = spans.fits[unit], spans.fits[0], spans.changed[unit]
    within, without = inside & changed, ~inside & changed
    if int(within.sum()) < FEWEST or float(own[~inside].mean() if (~inside).any() else 0.0) < FITS:
        return False
    if int(without.sum()) >= FEWEST and float(own[without].mean()) < FITS:
        return False  # the others are counted so as well, and do not show it
    if float(here[within].mean()) < FITS or float(own[within].mean()) > LOST * float(here[within].mean()):
        return False
    gained, lost = int((here & ~own & within).sum()), int((own & ~here & within).sum())
    return paired_tail(gained, lost) * tries < LEVEL


def _several(spans: Spans, unit: int, member: Array, tries: float) -> list[int]:
    """The parts that are each counted otherwise, where those that are left keep the edges of words as they are."""
    parts = [int(p) for p in np.unique(member[member >= 0])]
    odd = [p for p in parts if _reads_so(spans, unit, member == p)]
    rest = np.isin(member, [p for p in parts if p not in odd])
    if not 2 <= len(odd) < len(parts) or int((rest & spans.changed[unit]).sum()) < FEWEST:
        return []
    return [p for p in odd if _is_otherwise(_only(spans, (member == p) | rest), unit,
                                            (member == p)[(member == p) | rest], tries)]


def _reads_so(spans: Spans, unit: int, inside: Array) -> bool:
    within = inside & spans.changed[unit]
    here, own = spans.fits[unit][within], spans.fits[0][within]
    return len(here) >= FEWEST and float(here.mean()) >= FITS and float(own.mean()) <= LOST * float(here.mean())


def _only(spans: Spans, kept: Array) -> Spans:
    return replace(spans, shard=spans.shard[kept], row=spans.row[kept], fits=spans.fits[:, kept],
                   changed=spans.changed[:, kept])


def _stretch(group: Sequence[Shard], spans: Spans, unit: int, tries: float) -> Iterator[Finding]:
    """The rows of a file from which, or between which, spans are counted otherwise."""
    for i, shard in enumerate(group):
        at = np.flatnonzero((spans.shard == i) & spans.changed[unit])
        if len(at) < 2 * FEWEST:
            continue
        gain = spans.fits[unit][at].astype(np.float64) - spans.fits[0][at]
        found = heaviest(gain)
        if found.rows < FEWEST or found.rows > LONGEST * len(at):
            continue
        mine = at[found.start: found.end]
        rows = int(spans.row[mine[0]]), int(spans.row[mine[-1]]) if len(mine) else 0
        inside = (spans.shard == i) & (spans.row >= rows[0]) & (spans.row <= rows[1])
        chance = log_chance(int((gain[found.start: found.end] > 0).sum()),
                            int((gain[found.start: found.end] < 0).sum()), len(at), tries)
        if chance < np.log(LEVEL) and _is_otherwise(spans, unit, inside, tries):
            yield _finding(group, spans, unit, inside, f"rows {rows[0]}..{rows[1]} of {short(shard)}", None, -1)
            return


def _throughout(group: Sequence[Shard], spans: Spans, told: set[int]) -> Iterator[Finding]:
    """A remark where all spans are counted in another unit."""
    for unit in range(1, len(UNITS)):
        changed = spans.changed[unit]
        if told or int(changed.sum()) < 2 * FEWEST:
            continue
        if float(spans.fits[unit][changed].mean()) >= FITS > 2 * float(spans.fits[0][changed].mean()):
            yield RULE.finding(
                f"{spans.numbers} of {short(group[0])} {_are(spans)} counted in {UNITS[unit][0]} throughout: "
                f"{percent(float(spans.fits[0][changed].mean()))} of the spans that this changes {spans.fitting} "
                f"as characters, {percent(float(spans.fits[unit][changed].mean()))} so",
                place(group[0], spans.start), group[0].name, bearing=Bearing.SIGN, severity=Severity.INFO,
                measured={"field": spans.start, "fields": spans.fields, "kind": "throughout",
                          "unit": UNITS[unit][0], "shard": short(group[0])})
            return


def _are(spans: Spans) -> str:
    return "are" if spans.end else "is"


def _finding(group: Sequence[Shard], spans: Spans, unit: int, inside: Array, told: str, cut: Cut | None,
             part: int, others: Array | None = None) -> Finding:
    rest = ~inside if others is None else others
    within = inside & spans.changed[unit]
    shard = group[int(spans.shard[np.argmax(inside)])]
    declared = told_by_another_field(group, cut, part, spans.fields) if cut is not None else ""
    said = (
        f"{spans.numbers} of {told} {_are(spans)} counted in {UNITS[unit][0]}: "
        f"{percent(float(spans.fits[0][within].mean()))} of the {int(within.sum())} spans there that this changes "
        f"{spans.fitting} as they are, {percent(float(spans.fits[unit][within].mean()))} so, "
        f"and {percent(float(spans.fits[0][rest].mean()))} of all others as they are"
    )
    said += f"; {declared}" if declared else ""
    rows = spans.row[inside & (spans.shard == spans.shard[np.argmax(inside)])]
    return RULE.finding(
        said,
        place(shard, spans.start),
        shard.name,
        bearing=Bearing.CAUSE,
        severity=Severity.INFO if declared else None,
        measured={
            "field": spans.start, "fields": spans.fields, "unit": UNITS[unit][0],
            "by": cut.by or "file" if cut is not None else "stretch", "part": cut.names[part] if cut else "",
            "rows": (int(rows.min()), int(rows.max())), "spans": int(within.sum()),
            "kind": "declared" if declared else "unit", "shard": short(shard),
        },
    )
