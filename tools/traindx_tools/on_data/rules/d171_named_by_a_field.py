"""Links name the rows of a table by a field of it, whose numbers are those of the places too, in another order.

Edges that say 0 to N - 1, a table of N rows with a field of the numbers 0 to N - 1, sorted by something else: a program
that takes the numbers for places reads another row, and nothing fails. Whether it looks the rows up by the field is the
code's to say (`used_by_code.with_use`); without code it is a remark.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.links import MOST_LINKS, Links, alike, links_of
from traindx_tools.on_data.places import number, place, short
from traindx_tools.on_data.significance import LEVEL, normal_tail
from traindx_tools.on_data.used_by_code import UNKNOWN
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

GAIN = 0.05
LEFT = 1 / 3
ELSEWHERE = 0.5

RULE = Rule(
    id="D171",
    name="named-by-a-field",
    title="Links name rows by a field, and the rows lie in another order",
    severity=Severity.INFO,
    sees="how much joined rows are alike by the field and by their places; the code of the run, for the field's name",
    matters="Where the numbers are taken for places, every link joins strangers, and nothing fails.",
    alike=("Code that looks rows up by the field, or sorts by it: nothing is said.",
           "Rows in the order of the field: places and numbers are one."),
    confirm=("Compare the row at place 10 with the row whose field is 10.", "Sort the table by the field and train."),
    thresholds={
        "gain": Threshold(GAIN, "mean similarity", "that rows joined by the field have above rows joined by chance"),
        "left": Threshold(LEFT, "of that", "which rows joined by their places may have"),
        "elsewhere": Threshold(ELSEWHERE, "share of the rows", "that lie at another place than their number"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all tables"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each table that is named by one of its fields."""
    seen: set[str] = set()
    for links in links_of(view):
        if links.to.by and len(links.fields) == 2 and links.to.shard.name not in seen and _is_permuted(links.to.ids):
            found = _judged(links, view.comparisons)
            if found is not None:
                seen.add(links.to.shard.name)
                yield found


def _is_permuted(ids: Array) -> bool:
    """Whether the numbers are those of the places, counted from 0 or 1, in another order."""
    places = np.arange(len(ids)) + int(ids.min())
    return int(ids.min()) in (0, 1) and bool((np.sort(ids) == places).all()) and (
        float((ids != places).mean()) >= ELSEWHERE)


def _judged(links: Links, comparisons: int) -> Finding | None:
    numbers = [np.concatenate([s.columns[n].values for s in links.group]).astype(np.int64) for n in links.fields]
    some = np.unique(np.linspace(0, len(numbers[0]) - 1, min(len(numbers[0]), MOST_LINKS)).astype(np.int64))
    pairs = [v[some] for v in numbers]
    by_place = replace(links, to=replace(links.to, by="", ids=np.arange(len(links.to.ids))))
    strangers = [pairs[0], np.random.default_rng(7).permutation(pairs[1])]
    start = int(links.to.ids.min())
    for field, places, chance in zip(alike(links, pairs, 0), alike(by_place, pairs, -start),
                                     alike(links, strangers, 0), strict=True):
        after, before = (float(np.nanmean(v)) - float(np.nanmean(chance)) for v in (field, places))
        if after < GAIN or before > LEFT * after:
            continue
        gain = np.nan_to_num(field) - np.nan_to_num(places)
        z = float(gain.mean()) / max(1e-9, float(gain.std()) / math.sqrt(len(gain)))
        if normal_tail(z / 1.5) * 2 * comparisons < LEVEL:
            return _finding(links, after, before)
    return None


def _finding(links: Links, after: float, before: float) -> Finding:
    shard, source, name = links.to.shard, links.group[0], links.to.by
    apart = int((links.to.ids != np.arange(len(links.to.ids)) + int(links.to.ids.min())).sum())
    return RULE.finding(
        f"{' and '.join(links.fields)} of {short(source)} name rows of {short(shard)} by {name}, and {apart:,} of its "
        f"{len(links.to.ids):,} rows lie at another place than their {name}: joined rows are alike by {name} "
        f"({number(after)} above chance) and not by place ({number(before)}); code that takes the numbers for places "
        "joins strangers",
        place(shard, name),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": name, "fit": round(after, 4), "before": round(before, 4), "beside": short(source),
                  "rows": len(links.to.ids), "apart": apart, "kind": UNKNOWN, "shard": short(shard)},
    )
