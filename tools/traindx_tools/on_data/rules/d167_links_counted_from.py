"""Rows that name rows of another table (edges, an index) do so by numbers that are one too high, in one part or in all.

Linked nodes are alike, and what an index says goes along with the features of what it names. In the odd part that holds
only after 1 is taken away (or added): it counts from another number than the table. Its first number never occurs, and
its last one lies beyond the table. An edge list that was merged of two sources so joins each node with a stranger.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.cuts import by_field, by_file, in_two
from traindx_tools.on_data.links import FEWEST, MOST_LINKS, Links, alike, classes_beside, links_of, sureness, told
from traindx_tools.on_data.places import number, place, short
from traindx_tools.on_data.roles import is_id_name, keys
from traindx_tools.on_data.significance import LEVEL, normal_tail
from traindx_tools.on_data.stretches import heaviest
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

GAIN = 0.05
LEFT = 1 / 3
KINDS = 6

Way = tuple[str, str, dict[int, Array]]
"""A field that the links are to tell, what is compared, and how well each link fits by what is added to its numbers."""
Part = tuple[str, str, Array, float]
"""The field that it is cut by, how it is told, bool shape (links,), and how many parts there are of its kind."""

RULE = Rule(
    id="D167",
    name="links-counted-from",
    title="Links to rows of another table are counted from another number",
    severity=Severity.HIGH,
    sees="how much the rows are alike that each link joins, as numbered and moved by one, by file, field and stretch",
    matters="Each of these links joins strangers, and nothing fails but perhaps the very last number.",
    alike=("Links that say nothing of what is alike: neither way fits, and nothing is said.",
           "Rows in an order in which neighbours are alike: both ways fit.",
           "A table with a field of numbers that begin with 1: they are taken as they are."),
    confirm=("Print the lowest and the highest number of the named part beside the number of rows of the other table.",
             "Move the numbers in a copy and compare how often linked rows have one label."),
    thresholds={
        "gain": Threshold(GAIN, "mean similarity, or share of links", "that moving the numbers must win"),
        "left": Threshold(LEFT, "of that", "which may hold as they are"),
        "rows": Threshold(FEWEST, "links", "of a part"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all parts, fields and ways"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each table of links and the part that is off."""
    seen: set[str] = set()
    for links in links_of(view):
        found = _of_links(links, view.comparisons)
        if found is not None and found.source not in seen:
            seen.add(found.source)
            yield found


def _of_links(links: Links, comparisons: int) -> Finding | None:
    numbers = [np.concatenate([s.columns[n].values for s in links.group]).astype(np.int64) for n in links.fields]
    ways = _ways(links, numbers)
    if not ways:
        return None
    return _best(links, numbers, ways, list(_parts(links, len(numbers[0]))), comparisons) or (
        _best(links, numbers, ways, list(_stretches(ways, links.step)), comparisons))


def _stretches(ways: Sequence[Way], step: int) -> Iterator[Part]:
    """The links behind each other that most of all fit better when they are moved."""
    for _, _, fit in ways:
        for by in (-1, 1):
            rows = len(fit[0])
            stretch = heaviest(np.nan_to_num(fit[by] - fit[0], nan=0.0))
            yield "", f"rows {step * stretch.start}..{step * stretch.end - 1}", stretch.inside(rows), rows**2 / 2.0


def _best(
    links: Links, numbers: Sequence[Array], ways: Sequence[Way],
    parts: Sequence[Part], comparisons: int,
) -> Finding | None:
    best: tuple[float, str, Array, int, str, float, float] | None = None
    for cut_by, told_as, inside, tries in parts:
        for field, way, fit in ways:
            for by in (-1, 1) if not field or field != cut_by else ():
                found = _moved(fit, inside, by, numbers, links, tries * comparisons * len(ways) * 2)
                rest = ~inside
                if found is None or (rest.sum() >= FEWEST and _moved(fit, rest, by, numbers, links, 1.0) is not None):
                    continue  # none, or the whole is so: that is told of all
                if best is None or found[0] > best[0]:
                    best = found[0], told_as, inside, by, way, *found[1:]
    return _finding(links, numbers, *best[1:]) if best is not None else None


def _ways(links: Links, numbers: Sequence[Array]) -> list[Way]:
    """What is compared, and float64 shape (links,) of each way of counting: how well each link fits; NaN: no row."""
    out = []
    if len(numbers) == 2:
        by_shift = {by: alike(links, numbers, by) for by in (-1, 0, 1)}
        out = [("", "the rows that it joins are alike", {by: v[i] for by, v in by_shift.items()})
               for i in range(len(by_shift[0]))]
    else:
        for name, y in classes_beside(links):
            every = np.zeros(len(y), bool)
            every[:: max(1, -(-len(y) // (4 * MOST_LINKS)))] = True
            made = {by: np.full(len(y), np.nan) for by in (-1, 0, 1)}
            for by, values in made.items():
                values[every] = told(links, numbers[0][every], y[every], by)
            out.append((name, f"{name} is told by the row that it names", made))
    return out


def _parts(links: Links, count: int) -> Iterator[Part]:
    """All links, files, values of fields of few kinds: two are enough."""
    yield "", "all links", np.ones(count, bool), 1.0
    group = links.group
    for cut in [*by_file(group), *by_field(group, ()), *in_two(group)]:
        if cut.by not in links.fields:
            member = np.concatenate(cut.member)
            yield from ((cut.by, cut.told(p), member == p, float(len(cut.names))) for p in range(len(cut.names)))
    known = {n for n, c in group[0].columns.items() if c.row_shape or c.kind != "number" or is_id_name(n)}
    for name in [n for n, c in group[0].columns.items() if n not in (*links.fields, *known) and c.is_integer]:
        if all(name in s.columns for s in group):  # kinds of links: whole numbers that no name tells to be groups
            kinds, at = np.unique(np.concatenate([keys(s.columns[name]) for s in group]), return_inverse=True)
            for k in range(len(kinds)) if 3 <= len(kinds) <= KINDS else ():
                yield name, f"{name} {kinds[k]}", at.reshape(-1) == k, float(len(kinds))


def _moved(
    fit: dict[int, Array], inside: Array, by: int, numbers: Sequence[Array], links: Links, tries: float
) -> tuple[float, float, float] | None:
    """Significance, and how well links fit as they are and moved, above chance; None where that is no way."""
    low, high = int(links.to.ids.min()), int(links.to.ids.max())
    mine = [v[inside] for v in numbers]
    if len(mine[0]) < FEWEST or any(int(v.min()) + by < low or int(v.max()) + by > high for v in mine):
        return None
    own, moved = fit[0][inside], fit[by][inside]
    gain = np.nan_to_num(moved, nan=0.0) - np.nan_to_num(own, nan=0.0)
    chance = float(np.nanmean(fit[-by][inside]))  # what a way of counting that nobody uses gives
    before, after = float(np.nanmean(own)) - chance, float(np.nanmean(moved)) - chance
    if after < GAIN or before > LEFT * after or float(gain.mean()) < GAIN / 2:
        return None
    z = sureness(gain, mine[0])
    return (z, before, after) if normal_tail(z / 1.5) * tries < LEVEL else None


def _finding(
    links: Links, numbers: Sequence[Array], told_as: str, inside: Array, by: int, way: str, before: float, after: float
) -> Finding:
    starts = np.cumsum([0, *(s.rows for s in links.group)])
    first = int(np.argmax(inside))
    shard = links.group[int(np.searchsorted(starts, first, side="right")) - 1]
    mine = [v[inside] for v in numbers]
    low, high = min(int(v.min()) for v in mine), max(int(v.max()) for v in mine)
    to = links.to
    of = f"the {to.by} of {short(to.shard)}" if to.by else f"the rows of {short(to.shard)}"
    whole = bool(inside.all())
    said = (
        f"{' and '.join(links.fields)} of {told_as}{f' in {short(shard)}' if told_as != short(shard) else ''} count "
        f"from {low} to {high}, and {of} are {int(to.ids.min())} to {int(to.ids.max())}: {way} only after "
        f"{'1 is taken away' if by < 0 else '1 is added'} ({number(after)} above chance, and {number(before)} as they "
        f"are; {int(inside.sum()):,} of {len(inside):,} links)"
    )
    return RULE.finding(
        said,
        place(shard, links.fields[0]),
        shard.name,
        bearing=Bearing.CAUSE,
        severity=Severity.LOW if whole else None,
        measured={"field": links.fields[0], "fields": links.fields, "part": told_as, "shift": by, "lowest": low,
                  "highest": high, "rows_named": len(to.ids), "before": round(before, 4), "after": round(after, 4),
                  "to": os.path.basename(to.shard.name), "kind": "all" if whole else "part", "shard": short(shard)},
    )
