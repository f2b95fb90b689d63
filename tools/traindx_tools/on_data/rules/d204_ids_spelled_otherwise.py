"""Held-out rows and training rows are of the same subjects, whose ids are spelled in two ways.

`P-0012` in one file and `p12` in the other are no equal texts, so a split by id, or a check that the splits share none,
takes them for two patients. Told is what meets after case, separators, leading zeros, folders or a prefix are left out,
where numbers beside do not meet as well, or where the rows of an id hold the same values under both spellings. Rows
that belong to an id and differ between the spellings are of two subjects, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.id_spellings import AS_THEY_ARE, DENSE, FEWEST, Alike, alike
from traindx_tools.on_data.places import percent, place, rows, short
from traindx_tools.on_data.roles import is_group, is_id_name
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.split_columns import by_column
from traindx_tools.on_data.split_files import by_rows
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

OVERLAP = 0.1

RULE = Rule(
    id="D204",
    name="ids-spelled-otherwise",
    title="Held-out rows are of subjects of the training data, whose ids are spelled otherwise",
    severity=Severity.MEDIUM,
    sees="ids of held-out and training rows without case, separators, leading zeros, folders and prefixes, and the "
         "fields that belong to an id",
    matters="A split by such an id tears nothing apart on paper, and the model meets the same subjects again.",
    alike=("Two sources that count from 1 each: the fields of a number differ between them.",
           "A task about known subjects.", "Dense numbers: those beside meet as well, and nothing is said."),
    confirm=("Write both ids in one way and count how many are in both splits.",),
    thresholds={
        "overlap": Threshold(OVERLAP, "share of the held-out ids", "that are in training under the other spelling"),
        "as_they_are": Threshold(AS_THEY_ARE, "share of the held-out ids", "in training as written, at most"),
        "fewest": Threshold(FEWEST, "ids", "that meet"),
        "dense": Threshold(DENSE, "share of numbers beside that meet", "above, only the rows tell"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all fields, files and spellings"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each held-out shard and field of ids."""
    for data in (*view.sets, *(d for one in view.sets for d in (*by_column(one), *by_rows(one, view.split_files)))):
        for name in data.fields:
            having = [s for s in data.splits.get("train", ()) if s.rows and name in s.columns]
            for shard in (s for s in data.shards if s.split not in ("", "train") and name in s.columns and s.rows):
                if having and _names_subjects(data, having[0], name):
                    found = alike(shard, having, name, float(view.comparisons))
                    if found is not None and found.hits.mean() >= OVERLAP:
                        yield _finding(data, shard, having, name, found)


def _names_subjects(data: DataSet, shard: Shard, name: str) -> bool:
    """Whether a field may hold ids: texts of many kinds, or numbers that are called as ids are."""
    column = shard.columns[name]
    if name in data.labels or column.row_shape:
        return False
    return column.kind == "text" or is_group(name) or is_id_name(name)


def _finding(data: DataSet, shard: Shard, train: list[Shard], name: str, found: Alike) -> Finding:
    count = int(found.hits.sum())
    told = (f"; their {found.told_by} agrees under both spellings (rank correlation {found.agreement:.2f})"
            if found.told_by else "")
    by_chance = "" if found.beside >= DENSE else f", and {percent(found.beside)} meet a number beside"
    return RULE.finding(
        f"{count:,} of {len(found.hits):,} values of {name} in {short(shard)} ({percent(count / len(found.hits))}) are "
        f"in the training data under another spelling ({found.pair[0]!r} is {found.pair[1]!r} in {short(train[0])}), "
        f"{found.how}{by_chance}{told}: {rows(shard, found.rows)}",
        place(shard, name),
        shard.name,
        bearing=Bearing.CAUSE,
        severity=None if found.told_by else Severity.INFO,
        measured={"field": name, "overlap": count / len(found.hits), "beside": found.beside, "how": found.how,
                  "told_by": found.told_by, "correlation": found.agreement, "log_p": found.log_chance,
                  "rows": tuple(int(i) for i in np.asarray(found.rows[:20])), "kind": "spellings",
                  "shard": short(shard)},
    )
