"""The anomalies of a run as a table: text for a person, CSV and JSON for programs."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import dataclass

import numpy as np

from traindx_tools.on_logs.anomalies.anomaly import Anomaly, Kind
from traindx_tools.on_logs.anomalies.detect import anomalies_of
from traindx_tools.on_logs.curves.shapes import number, place
from traindx_tools.on_logs.run import Run, Series

COLUMNS = ("metric", "original", "group", "kind", "up", "unit", "start", "end", "line", "size", "chance", "source")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SIZES = {Kind.SPIKE: "{} times its scatter", Kind.STEP: "by {} times its scatter", Kind.DRIFT: "by {} in all",
          Kind.OSCILLATION: "every {} records", Kind.HALVED: "{} halvings", Kind.FLAT: "{} records of one value",
          Kind.COPIED: "{} records that stood before", Kind.IMPOSSIBLE: "is {}"}


@dataclass(frozen=True, eq=False)
class AnomalyTable:
    """What stands out in each series, in the order of the series."""

    rows: tuple[tuple[Series, Anomaly], ...]

    def render(self, form: str = "table") -> str:
        """ "table", "csv" or "json": a row an anomaly."""
        cells = [_cells(s, a) for s, a in self.rows]
        if form == "json":
            return json.dumps([dict(zip(COLUMNS, c, strict=True)) for c in cells], ensure_ascii=False, indent=1) + "\n"
        if form == "csv":
            out = io.StringIO()
            csv.writer(out, lineterminator="\n").writerows([COLUMNS, *cells])
            return out.getvalue()
        return "".join(f"{sentence(s, a)}\n" for s, a in self.rows) or "nothing stands out in any series\n"


def listed(run: Run) -> AnomalyTable:
    """What stands out in each series of a run."""
    return AnomalyTable(tuple((s, a) for s in run.series for a in anomalies_of(s)))


def sentence(series: Series, found: Anomaly) -> str:
    """An anomaly in words, with its series and its line."""
    text = (f"{series} ({series.original}): {in_words(series, found)} "
            f"({series.source}:{int(series.line[found.start])})")
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def in_words(series: Series, found: Anomaly) -> str:
    """What it is, where and how large: "step up at step 900, from 2 to 3, by 30 times its scatter"."""
    way = "" if found.kind not in (Kind.SPIKE, Kind.STEP, Kind.DRIFT) else " up" if found.up else " down"
    until = "" if found.end == found.start else f" to {place(series, found.end)}"
    size = f"{_levels(series, found)}{_SIZES[found.kind].format(number(found.size))}"
    return f"{found.kind.value}{way} at {place(series, found.start)}{until}, {size}"


def _levels(series: Series, found: Anomaly) -> str:
    """Of a step: the levels before and after, medians of up to eight finite values; of halvings the two ends."""
    if found.kind is Kind.HALVED:
        return f"from {number(float(series.values[found.start]))} to {number(float(series.values[found.end]))}, "
    if found.kind is not Kind.STEP:
        return ""
    before = series.values[:found.start][series.finite[:found.start]][-8:]
    after = series.values[found.end:][series.finite[found.end:]][:8]
    if not len(before) or not len(after):
        return ""
    return f"from {number(float(np.median(before)))} to {number(float(np.median(after)))}, "


def _cells(series: Series, found: Anomaly) -> tuple[str | float | int | bool, ...]:
    size = found.size if abs(found.size) < float("inf") else str(found.size)
    return (series.name, series.original, series.group, found.kind.value, found.up, series.unit,
            float(series.position[found.start]), float(series.position[found.end]), int(series.line[found.start]), size,
            found.chance, series.source)
