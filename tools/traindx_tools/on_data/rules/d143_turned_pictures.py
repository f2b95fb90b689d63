"""Pictures of one part come nearer to all others when they are turned, inverted, or their colours exchanged.

Most kinds of pictures have an upper side, a colour that is frequent, a background. Each picture is laid against the
mean of all, as it is and changed; where nearly all of a stretch or a shard come nearer by one change and hardly any
of the others do, they were stored so. Pictures without such a side (textures, cells) come nearer half of the time,
everywhere, and nothing is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.origins import groups_of
from traindx_tools.on_data.picture_turns import WAYS, Pictures, are_copies, come_in_blocks, distances, pictures_of
from traindx_tools.on_data.places import listed, percent, place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL, share_tail
from traindx_tools.on_data.stretches import Stretch, heaviest
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

INSIDE = 0.85
OUTSIDE = 0.2
LONGEST = 0.5
AS_NEAR = 1.15
CLEARER = 1.25
FEWEST = 16
FEWEST_KINDS = 4
"""Kinds of a word of the names, one of which can be odd."""

RULE = Rule(
    id="D143",
    name="turned-pictures",
    title="Pictures of one part are turned, inverted or have their colours exchanged",
    severity=Severity.HIGH,
    sees="which pictures come nearer to the mean of all after each of eight changes, in the order of the rows",
    matters="A model sees things upside down, or blue where all others are red, and learns both or neither.",
    alike=("Augmentation: single pictures, not a whole part.", "Pictures without an upper side: as many everywhere.",
           "Pictures sorted by class or video: each has a look of its own."),
    confirm=("Look at ten pictures of the part beside ten others.", "Undo the change in a copy and look again."),
    thresholds={
        "inside": Threshold(INSIDE, "share of the part", "that must come nearer"),
        "outside": Threshold(OUTSIDE, "share of all others", "that may come nearer"),
        "as_near": Threshold(AS_NEAR, "times the distance of the others", "after the change, so that it explains them"),
        "clearer": Threshold(CLEARER, "times nearer", "a whole split comes to training by the change, at least"),
        "longest": Threshold(LONGEST, "share of all pictures", "above, nobody knows which part is the odd one"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all stretches, changes and fields"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """The surest change and part of each field."""
    for data in view.sets:
        for group in data.splits.values():
            shown = tuple(s for s in group if s.columns and s.rows)
            for pictures in pictures_of(shown) if shown else ():
                found = list(_of(data, shown, pictures, view.comparisons))
                yield from found or _by_names(view, data, shown, pictures)
        yield from _by_split(data, view.comparisons)


def _by_split(data: DataSet, comparisons: int) -> Iterator[Finding]:
    """The same of all pictures of a held-out split beside those of training: within it none is odd."""
    train = tuple(s for s in data.splits.get("train", ()) if s.columns and s.rows)
    for split, some in data.splits.items():
        held = tuple(s for s in some if s.columns and s.rows)
        for pictures in pictures_of((*train, *held)) if split != "train" and train and held else ():
            start = int((pictures.shards < len(train)).sum())
            yield from _of(data, (*train, *held), pictures, comparisons, Stretch(start, len(pictures.shards)))


def _by_names(view: View, data: DataSet, group: Sequence[Shard], pictures: Pictures) -> Iterator[Finding]:
    """The same of files that have a word of their names or a value in a manifest in common, laid one behind the other.

    Files in folders lie by class, and not by where they came from.
    """
    if not all(len(s.row_names) == s.rows for s in group):
        return
    names = [group[s].row_names[r] for s, r in zip(pictures.shards, pictures.rows, strict=True)]
    ways = [(by, values) for by, values in groups_of(names, view) if by != "folder"]
    for by, values in ways:
        kinds, codes = np.unique(values, return_inverse=True)
        codes = codes.reshape(-1)
        if not FEWEST_KINDS <= len(kinds) <= len(names) // FEWEST:
            continue
        order = np.argsort(codes, kind="stable")
        sorted_ = replace(pictures, cells=pictures.cells[order], shards=codes[order], rows=order)
        for seen in _of(data, [replace(group[0], row_names=tuple(names), rows=len(names))] * len(kinds), sorted_,
                        view.comparisons * len(ways)):
            first, share, outside = (seen.measured[n] for n in ("first", "share", "outside"))
            assert isinstance(first, int)
            assert isinstance(share, float)
            assert isinstance(outside, float)
            kind = str(kinds[codes[first]])
            said = (f"{pictures.field} whose {by} is {kind} come nearer to all others changed so: "
                    f"{seen.measured['change']}; {percent(share)} of these pictures do, and {percent(outside)} of the "
                    "others")
            yield replace(seen, statement=said, measured={**seen.measured, "rows": (), "by": by, "part": kind})
            return


def _of(data: DataSet, group: Sequence[Shard], pictures: Pictures, comparisons: int, whole: Stretch | None = None
        ) -> Iterator[Finding]:
    """The surest change, of the stretch that it is told by, or of the one that is given."""
    best: tuple[float, float, str, Stretch, Array] | None = None
    for told, before, after, changed in distances(pictures):
        hits = after < before
        rate = float(hits.mean())
        if not 0.0 < rate <= LONGEST + OUTSIDE:
            continue
        low = max(0.02, min(OUTSIDE, rate))
        found = whole or _snapped(heaviest(np.where(hits, math.log(0.95 / low), math.log(0.05 / (1 - low)))),
                                  pictures.shards)
        inside = found.inside(len(hits))
        if found.rows < FEWEST or found.rows > LONGEST * len(hits):
            continue
        within, outside = float(hits[inside].mean()), float(hits[~inside].mean())
        if within < INSIDE or outside > OUTSIDE:
            continue
        if float(np.median(after[inside])) > AS_NEAR * float(np.median(before[~inside])):
            continue  # nearer, and still no picture like the others: another fault
        if whole is not None and CLEARER * float(np.median(after[inside])) > float(np.median(before[inside])):
            continue  # a split of another look, as of another camera, may be a little nearer by some change
        blocks = whole is None and come_in_blocks(pictures.cells[~inside])
        if blocks or are_copies(changed[inside], pictures.cells[~inside]):
            continue  # by class, by video: parts of the others have a look of their own; or augmented copies
        p = share_tail(int(hits[inside].sum()), found.rows, max(outside, 1.0 / len(hits)))
        chance = math.log(max(p, 1e-300)) + 2 * math.log(len(hits)) + math.log(len(WAYS) * comparisons)
        if chance < math.log(LEVEL) and (best is None or (-within, chance) < (-best[1], best[0])):
            best = chance, within, told, found, hits
    if best is not None:
        yield _finding(data, group, pictures, *best)


def _snapped(found: Stretch, shards: Array) -> Stretch:
    """A stretch that is a shard but for few pictures is the shard."""
    edges = np.flatnonzero(np.diff(shards)) + 1
    edges = np.concatenate([[0], edges, [len(shards)]])
    start, end = (int(edges[np.abs(edges - at).argmin()]) for at in (found.start, found.end))
    near = max(abs(start - found.start), abs(end - found.end)) <= 0.05 * found.rows
    return Stretch(start, end) if near and end > start else found


def _finding(
    data: DataSet, group: Sequence[Shard], pictures: Pictures, chance: float, within: float, told: str,
    stretch: Stretch, hits: Array,
) -> Finding:
    at = np.arange(stretch.start, stretch.end)
    which = pictures.shards[at]
    index = int(np.bincount(which).argmax())
    shard = group[index]
    mine = pictures.rows[at[which == index]]
    others = [short(group[i]) for i in dict.fromkeys(which.tolist()) if i != index]
    first, last = int(mine.min()), int(mine.max())
    names = f" ({shard.row_names[first]} to {shard.row_names[last]})" if shard.row_names else ""
    also = f" (and {listed(others)})" if others else ""
    outside = float(hits[~stretch.inside(len(hits))].mean())
    return RULE.finding(
        f"{pictures.field} in rows {first}..{last}{names} of {short(shard)}{also} comes nearer to all others when it "
        f"has {told}: {percent(within)} of these pictures do, and {percent(outside)} of the others"
        if told.startswith(("the order", "their", "height")) else
        f"{pictures.field} in rows {first}..{last}{names} of {short(shard)}{also} comes nearer to all others when it "
        f"is {told}: {percent(within)} of these pictures do, and {percent(outside)} of the others",
        place(shard),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": pictures.field, "change": told, "rows": (first, last), "first": int(mine[0]),
                  "share": within, "outside": outside,
                  "log_p": chance, "shard": short(shard), "set": data.name},
    )
