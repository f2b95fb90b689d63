"""One file says of itself another thing than its siblings, its numbers show it, and the code takes no notice.

An attribute or a number beside the rows says what the rows are: the step between two labels, a scale, the order of the
channels. Files of another origin say another one, rightly. Told is a property whose difference the numbers show as
well: they differ by the same ratio, or fit the siblings' in the order that the list gives. Whether it harms is the
code's to say: where the code of the run is known it is looked at for the name of the property (`used_by_code`).
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.places import place, short
from traindx_tools.on_data.stated import AGREE, APART, FIT, NEAR, Confirmed, Said, confirmed
from traindx_tools.on_data.used_by_code import UNKNOWN
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="D210",
    name="stated-otherwise",
    title="A file says that its numbers are to be read otherwise than its siblings'",
    severity=Severity.LOW,
    sees="attributes of HDF5, single numbers, texts and lists of names of npz files, by file, beside ratios of whole "
         "numbers of a row, spreads, means and channels of its fields; the code of the run, for the property's name",
    matters="A loader that takes the numbers alone reads this file in another unit, at another rate, in another order.",
    alike=("A loader that reads the property: a remark, and one as long as no code is known.",
           "A property that differs while the numbers do not (a date, a version): nothing is said."),
    confirm=("Print the property of the named file and of another beside what the loader makes of ten rows of both.",),
    thresholds={
        "apart": Threshold(APART, "of the logarithm", "between two stated numbers"),
        "near": Threshold(NEAR, "of the logarithm", "between the stated and the measured ratio, or its inverse"),
        "agree": Threshold(AGREE, "of the measure", "by which siblings may differ among themselves"),
        "fit": Threshold(FIT, "of the distance between the channels", "that is left in the stated order"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each such file and property."""
    for data in view.sets:
        for found in confirmed(data.shards):
            yield _finding(found)


def _finding(found: Confirmed) -> Finding:
    what = "in another order" if found.kind == "order" else "another one"
    return RULE.finding(
        f"{found.name} of {short(found.shard)} is {_said(found.said)}, {what} than in its {found.siblings} siblings "
        f"({_said(found.usual)}), and {found.measured}; a loader that gives the numbers alone drops it",
        place(found.shard, found.field), found.shard.name, bearing=Bearing.SIGN, severity=Severity.INFO,
        measured={"field": found.name, "fields": (found.field,), "value": _said(found.said),
                  "usual": _said(found.usual), "way": found.kind, "kind": UNKNOWN, "shard": short(found.shard)})


def _said(said: Said) -> str:
    if isinstance(said, tuple):
        return ", ".join(said[:8]) + (", ..." if len(said) > 8 else "")
    return f"{said:.6g}" if isinstance(said, float) else repr(said)
