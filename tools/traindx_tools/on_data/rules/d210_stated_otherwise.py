"""One file states otherwise than its siblings how its numbers are to be read, and a reader of the numbers drops that.

Attributes of HDF5, scalars beside the arrays of an npz, metadata of a table, a JSON file of the same name: a sampling
rate, a hop, a unit, a scale, the order of the bands. They are right, and nothing is wrong with the file: what takes its
rows as those of the others is. Without the code nothing is decided, so it is a remark unless the numbers show it.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Stated
from traindx_tools.on_data.places import listed, place, short
from traindx_tools.on_data.roles import tells_reading
from traindx_tools.on_data.stated_apart import AGREE, LEAST, NEARER, ORDER, USUAL, WITHIN, Apart, apart
from traindx_tools.on_data.used_by_code import DROPPED, UNKNOWN
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="D210",
    name="stated-otherwise",
    title="One file states otherwise than its siblings how its numbers are to be read",
    severity=Severity.LOW,
    sees="attributes, scalars, short lists and metadata of each file, a JSON file of its name beside it, and the code",
    matters="Code that takes the rows of all files alike reads those of this one at another rate, scale or order.",
    alike=("Properties that each file has for itself: a date, a seed, how many rows.",
           "A property that says where the data are from and not how they are read: a remark.",
           "Code that reads the property: a remark."),
    confirm=("Print the property of the named file and of another one, and what the loader does with it.",),
    thresholds={
        "usual": Threshold(USUAL, "files", "that agree, but for lists of the same names in another order"),
        "agree": Threshold(AGREE, "share of the files", "that agree, likewise"),
        "least": Threshold(LEAST, "times", "that two numbers differ before their ratio is looked for in the data"),
        "within": Threshold(WITHIN, "of the ratio", "that the measured one is off"),
        "nearer": Threshold(NEARER, "of the distance", "of the channels that is left in the stated order"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each property of each set that is not the same in all files."""
    for data in view.sets:
        for found in apart(data):
            yield _finding(found)


def _finding(found: Apart) -> Finding:
    shard = found.shards[0]
    more = f" and {len(found.shards) - 1} more" if len(found.shards) > 1 else ""
    reading = found.what == ORDER or tells_reading(found.field) or bool(found.shown)
    return RULE.finding(
        f"{short(shard)}{more} states {found.field} {_said(found.here)}, {found.others:,} "
        f"other{'s' if found.others > 1 else ''} {_said(found.usual)}{f'; {found.shown}' if found.shown else ''}; "
        f"{DROPPED}",
        place(shard, found.field.rsplit(".", 1)[0]),
        shard.name,
        bearing=Bearing.SIGN,
        severity=Severity.LOW if found.shown else Severity.INFO,
        measured={"field": found.property, "property": found.field, "what": found.what, "value": _said(found.here),
                  "usual": _said(found.usual), "files": len(found.shards), "others": found.others,
                  "ratio": found.ratio, "shown": found.shown, "reading": reading, "format": shard.format,
                  "kind": UNKNOWN, "shard": short(shard)},
    )


def _said(value: Stated) -> str:
    if isinstance(value, tuple):
        return f"[{listed([str(v) for v in value], 8)}]"
    return f"{value:g}" if isinstance(value, float) else repr(value)
