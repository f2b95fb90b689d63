"""Whole numbers went through a floating-point type: the last bits of the large ones are gone.

float32 holds whole numbers up to 2**24, float64 up to 2**53. Above, only multiples of a power of two are left, and of a
larger one for larger numbers. Told is what is rounded in just this way, up to the last bit that the type has: sizes in
pages and times in seconds are multiples of one number throughout.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.places import of, place, rows, short
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

DIGITS = {"float32": 24, "float64": 53}
LAST = 0.25
FEWEST = 20

RULE = Rule(
    id="D127",
    name="rounded-ids",
    title="Whole numbers were rounded by a floating-point type",
    severity=Severity.HIGH,
    sees="the lowest bit of each whole number against those that float32 and float64 can hold at its size",
    matters="Different rows get one id: they join with the wrong rows, or with none.",
    alike=("Sizes in pages, times in whole seconds: multiples of one number, whatever their size.",),
    confirm=("Compare the named ids with the table that they come from.",),
    thresholds={
        "last": Threshold(LAST, "share of the large numbers", "whose lowest bit is the last one that the type holds; "
                                                              "half are expected"),
        "rows": Threshold(FEWEST, "distinct large numbers", "fewer may be chosen"),
        "level": Threshold(LEVEL, "probability", "that so many have no lower bit by chance"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each field of a file that was rounded."""
    for data in view.sets:
        for shard in data.shards:
            for name, column in shard.columns.items():
                if column.kind == "number" and column.values.dtype.kind in "iu" and column.values.dtype.itemsize >= 4:
                    told = rounded(column.values, view.comparisons)
                    if told is None:
                        continue
                    form, large, lost = told
                    yield RULE.finding(
                        f"{of(name, shard)} was rounded to {form}: all {len(large):,} numbers above 2**{DIGITS[form]} "
                        f"are multiples of the power of two that {form} leaves at their size ({rows(shard, large)}); "
                        f"up to {lost} of their last bits are gone",
                        place(shard, name),
                        shard.name,
                        bearing=Bearing.CAUSE,
                        measured={"field": name, "type": form, "bits": lost, "rows": len(large), "shard": short(shard)},
                    )


def rounded(values: Array, comparisons: int) -> tuple[str, Array, int] | None:
    """(type, rows with numbers that it rounds, bits lost at most), None where the numbers were not rounded so."""
    flat = np.abs(values.reshape(len(values), -1)[:, 0].astype(np.int64)) if values.size else np.empty(0, np.int64)
    flat = np.maximum(flat, 0)  # the smallest int64 has no positive twin
    for form, digits in DIGITS.items():
        large = np.flatnonzero(flat > 2**digits)
        kinds = np.unique(flat[large])
        if len(kinds) < FEWEST or len(large) < 0.5 * len(flat):
            continue
        unit = int(np.gcd.reduce(kinds))
        if unit & (unit - 1):  # whole days, hours, thousands: a rounded number keeps powers of two alone
            continue
        lost = np.floor(np.log2(kinds.astype(np.float64))).astype(np.int64) + 1 - digits
        lowest = np.log2((kinds & -kinds).astype(np.float64)).astype(np.int64)
        chance = -float(lost.sum()) * math.log(2.0) + math.log(comparisons * len(DIGITS))
        if (lowest >= lost).all() and chance < math.log(LEVEL) and float((lowest == lost).mean()) >= LAST:
            return form, large, int(lost.max())
    return None
