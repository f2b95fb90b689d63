"""A manifest and the headers of the files that it lists disagree for some of them, and agree for the others.

A column that says the rate, the number of samples, the seconds, the width or the height of nearly all files is known by
that, whatever it is called; files for which it says something else were made anew, cut, or have a header that is wrong.
Small numbers (channels, classes) agree by chance and are not compared.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.declared import tables_of
from traindx_tools.on_data.places import number, place, rows
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

FEWEST = 20
"""Files."""
AGREE = 0.8
"""Share of the files for which a column says a header's number, so that it is known to mean it."""
SMALLEST = 17.0
"""Numbers below which counts of channels, bits and classes agree by chance."""
SAME, OTHER = 0.01, 0.05
"""Relative difference up to which numbers agree (they are rounded), and from which on they do not."""
ROUNDED = 0.051
"""Seconds by which a duration with one digit is off at most."""

RULE = Rule(
    id="D154",
    name="manifest-disagrees",
    title="A manifest and the headers of some files disagree",
    severity=Severity.MEDIUM,
    sees="rate, samples, seconds, width and height in headers, beside the numbers that a table gives for each file",
    matters="Durations, windows and features that are computed from one of the two are wrong for these files.",
    alike=("A column that agrees with no header: it means something else.", "Rounded seconds."),
    confirm=("Play or open one named file, and one that agrees.",),
    thresholds={
        "agree": Threshold(AGREE, "share of the files", "for which both say the same: then the column means this"),
        "other": Threshold(OTHER, "relative difference", "from which on both disagree; up to 0.01 they agree"),
        "fewest": Threshold(FEWEST, "files", "fewer may agree by chance"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each folder of files and each column that disagrees for some."""
    tables = tables_of(view)
    for data in view.sets:
        for shard in data.shards:
            if shard.format in ("sounds", "pictures") and len(shard.row_names) == shard.rows >= FEWEST:
                for where, table in tables:
                    yield from _of_table(shard, where, table)


def _of_table(shard: Shard, where: str, table: Mapping[str, Sequence[object]]) -> Iterator[Finding]:
    at = _places(shard, table)
    if at is None:
        return
    listed = np.flatnonzero(at >= 0)
    headers = _headers(shard)
    told: list[tuple[Array, Finding]] = []
    for column, values in table.items():
        said = _numbers(values)
        if said is None:
            continue
        for what, header in headers.items():
            odd = _disagree(said[at[listed]], header[listed], what)
            if odd is not None:
                told.append((odd, _finding(shard, (where, column, what), listed[odd], said[at[listed]][odd],
                                           header[listed][odd], len(listed))))
    for k, (odd, finding) in enumerate(told):  # seconds and samples of the same files are told once
        if not any(np.array_equal(odd, other) for other, _ in told[:k]):
            yield finding


def _places(shard: Shard, table: Mapping[str, Sequence[object]]) -> Array | None:
    """int64 shape (files,): the row of the table that names each file, -1 for none; None where hardly one is named."""
    stems = [os.path.splitext(os.path.basename(n))[0] for n in shard.row_names]
    for values in table.values():
        if len(values) < FEWEST or not isinstance(values[0], str):
            continue
        rows_of = {os.path.splitext(os.path.basename(str(v)))[0]: i for i, v in enumerate(values)}
        at = np.array([rows_of.get(s, -1) for s in stems])
        if len(rows_of) == len(values) and float((at >= 0).mean()) >= AGREE and (at >= 0).sum() >= FEWEST:
            return at
    return None


def _headers(shard: Shard) -> dict[str, Array]:
    """What headers say of each file, and the seconds that follow."""
    found = {n: np.asarray(shard.columns[n].values, np.float64) for n in ("rate", "frames", "width", "height")
             if n in shard.columns and shard.columns[n].missing is None}
    if "rate" in found and "frames" in found and (found["rate"] > 0).all():
        found["seconds"] = found["frames"] / found["rate"]
        found["milliseconds"] = 1000.0 * found["seconds"]
    return found


def _numbers(values: Sequence[object]) -> Array | None:
    try:
        said = np.array([float(str(v)) for v in values])
    except ValueError:
        return None
    return said if np.isfinite(said).all() else None


def _disagree(said: Array, header: Array, what: str) -> Array | None:
    """bool: files for which a column and a header disagree, where they agree for most; None of any other column."""
    apart = np.abs(said - header) - (ROUNDED if what == "seconds" else 0.0)
    agree, other = apart <= SAME * np.abs(header), apart > OTHER * np.abs(header)
    if float(agree.mean()) < AGREE or not other.any() or not bool((agree | other).all()):
        return None
    if what == "seconds":
        telling = len(np.unique(np.round(header, 1))) >= 3
    else:
        telling = float(np.median(header)) >= SMALLEST
    return other if telling else None


def _finding(shard: Shard, named: tuple[str, str, str], odd: Array, said: Array, header: Array, files: int) -> Finding:
    where, column, what = named
    ratio = header / np.where(said == 0, np.nan, said)
    one = float(np.nanmedian(ratio))
    same = bool(np.nanmax(np.abs(ratio / one - 1.0)) < OTHER) if np.isfinite(one) and one else False
    told = f"; all by the factor {number(one)}" if same else ""
    return RULE.finding(
        f"{column} in {where} says {number(float(said[0]))} {what} of {shard.row_names[odd[0]]}, and its header "
        f"{number(float(header[0]))}{told}; both disagree for {len(odd):,} of {files:,} files and agree for the "
        f"others: {rows(shard, odd)}",
        place(shard),
        shard.name,
        bearing=Bearing.SIGN,
        measured={"field": "rate" if what in ("seconds", "milliseconds") else what, "column": column, "table": where,
                  "what": what, "count": len(odd), "ratio": one, "files": tuple(shard.row_names[i] for i in odd[:20]),
                  "kind": "manifest", "shard": shard.name},
    )
