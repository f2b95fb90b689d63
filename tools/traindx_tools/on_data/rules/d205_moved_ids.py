"""The ids of one file are those of all others, moved by a few numbers: it was written with another vocabulary.

A special token that was added, or an older vocabulary without it, moves every id behind it, and each token is read as
its neighbour; a file that was stored newest first asks for the one before as the next one. A model of what follows on
what in the other files finds the file strange as it is, and usual once the ids are moved back, or read from their end
(`moved_ids.py`). A file of another language or topic is strange in any way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.moved_ids import (
    FARTHEST,
    FEWEST,
    SIGMAS,
    STRANGE,
    UNDONE,
    Moved,
    ids_of,
    moved_files,
    orders_of,
)
from traindx_tools.on_data.places import place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

SHORT = 8
"""Ids of a row, below which its direction is no order in time: edges, triples."""

RULE = Rule(
    id="D205",
    name="moved-ids",
    title="The ids of one file are those of the others, moved or turned around",
    severity=Severity.HIGH,
    sees="what follows on what in the ids of each file, as they are, moved by up to sixteen numbers, and from its end",
    matters="The file was written with another vocabulary, or the wrong way round: it teaches what is not so.",
    alike=("Another language or topic: no move makes it usual.", "Few ids: what follows on what says too little."),
    confirm=("Decode some rows of the file and of another one.", "Ask which vocabulary each file was written with."),
    thresholds={
        "fewest": Threshold(FEWEST, "ids", "of each file"),
        "farthest": Threshold(FARTHEST, "numbers", "that ids are moved by"),
        "strange": Threshold(STRANGE, "nats of an id", "by which the file is less usual than the others"),
        "undone": Threshold(UNDONE, "of that", "which the move takes away"),
        "sigmas": Threshold(SIGMAS, "standard errors", "of the gain over blocks of the file"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each field and file."""
    for data in view.sets:
        group = [s for s in data.shards if s.columns and s.rows]
        for name in data.fields:
            having = [s for s in group if ids_of(s.columns.get(name)) is not None]
            if len(having) >= 2:
                orders = orders_of(view.hints.pieces.texts) if view.hints.pieces is not None else ()
                yield from (_finding(having, name, one) for one in moved_files(having, name, orders)
                            if one.by or one.order or _runs_on(having, name))


def _runs_on(group: Sequence[Shard], name: str) -> bool:
    """Whether more than pairs and other short rows follow on each other, in so many files that one is the odd one."""
    widths = [int(s.columns[name].row_shape[0]) for s in group if s.columns[name].row_shape]
    return len(group) >= 3 and min(widths, default=SHORT) >= SHORT


def _renumbered(group: Sequence[Shard], name: str, found: Moved) -> Finding:
    """The ids of another numbering of the same vocabulary."""
    shard = group[found.index]
    others = f"the {len(group) - 1} other files" if len(group) > 2 else short(group[1 - found.index])
    return RULE.finding(
        f"{name} in {short(shard)} holds ids of a vocabulary that was numbered {found.order}, not those of {others}: "
        f"by what follows on what there its ids have a mean log chance of {found.here:.3f}, renumbered "
        f"{found.undone:.3f}, and those files among each other {found.others:.3f}: it was encoded with another "
        "vocabulary or tokenizer, and decodes to nonsense with the one of the others",
        place(shard, name),
        shard.name,
        bearing=Bearing.CAUSE,
        title="The ids of one file are those of another vocabulary",
        measured={"field": name, "by": 0, "here": found.here, "after": found.undone, "others": found.others,
                  "order": found.order, "shard": short(shard), "kind": "renumbered"},
    )


def _finding(group: Sequence[Shard], name: str, found: Moved) -> Finding:
    shard = group[found.index]
    if found.order:
        return _renumbered(group, name, found)
    if not found.by:
        return RULE.finding(
            f"{name} in {short(shard)} runs the other way round: by what follows on what in the {len(group) - 1} other "
            f"files its ids have a mean log chance of {found.here:.3f}, from their end to their beginning "
            f"{found.undone:.3f}, and those files among each other {found.others:.3f}",
            place(shard, name),
            shard.name,
            bearing=Bearing.CAUSE,
            title="The ids of one file run the other way round",
            measured={"field": name, "by": 0, "here": found.here, "after": found.undone, "others": found.others,
                      "shard": short(shard), "kind": "turned"},
        )
    from_on = f"from {found.start} on " if found.start else ""
    return RULE.finding(
        f"each id of {name} in {short(shard)} {from_on}stands for the one {abs(found.by)} "
        f"{'above' if found.by > 0 else 'below'} it in the {len(group) - 1} other files: by what follows on what there "
        f"its ids have a mean log chance of {found.here:.3f}, moved {found.undone:.3f}, and those files among each "
        f"other {found.others:.3f}; another or an older vocabulary, with or without a special token, makes that",
        place(shard, name),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": name, "by": found.by, "start": found.start, "here": found.here, "after": found.undone,
                  "others": found.others, "shard": short(shard), "kind": "moved"},
    )
