"""Held-out sequences are in the training data turned around, complemented, or both.

The reverse complement of a strand is the same piece of DNA; a reversed string is often the same thing to a model that
was trained on both. No comparison of rows as they stand sees it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.places import percent, place, rows, short
from traindx_tools.on_data.roles import is_identifier
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.strands import ITSELF, SHARE, SHORTEST, letters_of, turned
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

ROWS = 0.01
FEWEST = 5
MOST_FIELDS = 4

RULE = Rule(
    id="D196",
    name="other-strand",
    title="Held-out sequences are in the training data turned around",
    severity=Severity.HIGH,
    sees="runs of letters of texts without spaces, of ids of a small alphabet and of one-hot arrays, across splits",
    matters="The held-out sequence was trained on: the score says nothing of new ones.",
    alike=("Palindromes and repeats: a sequence that holds its own reverse says nothing.",
           "Short motifs that both share: fewer than most of a sequence's runs."),
    confirm=("Print the reverse complement of a named row and look for it in the training file.",
             "Split by the sequence that comes first of both directions."),
    thresholds={
        "share": Threshold(SHARE, "of a sequence's runs", "that stand in the training data once it is turned"),
        "itself": Threshold(ITSELF, "of its runs", "that stand in itself so, at most"),
        "rows": Threshold(ROWS, "of the held-out rows", "fewer change no score"),
        "fewest": Threshold(FEWEST, "rows", "fewer may be chance"),
        "letters": Threshold(SHORTEST, "letters", "of the typical sequence"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each held-out shard and field."""
    for data in view.sets:
        train = [s for s in data.splits.get("train", ()) if s.columns and s.rows]
        held = [s for s in data.shards if s.split not in ("", "train") and s.columns and s.rows]
        if train and held:
            yield from _of_set(data, train, held)


def _of_set(data: DataSet, train: Sequence[Shard], held: Sequence[Shard]) -> Iterator[Finding]:
    made = 0
    for name in data.fields:
        having = [s for s in (*train, *held) if name in s.columns]
        if len(having) < len(train) + len(held) or made == MOST_FIELDS or is_identifier(train[0].columns[name]):
            continue
        found = letters_of(having, name)
        if found is None:
            continue
        made += 1
        letters, complements = found
        for shard, mine in zip(held, letters[len(train):], strict=True):
            best = max(turned(mine, letters[: len(train)], complements), key=lambda t: int(t.hits.sum()))
            count = int(best.hits.sum())
            if count >= max(FEWEST, ROWS * shard.rows):
                yield _finding(shard, name, best.how, np.flatnonzero(best.hits), train)


def _finding(shard: Shard, name: str, how: str, where: Array, train: Sequence[Shard]) -> Finding:
    return RULE.finding(
        f"{len(where):,} of {shard.rows:,} rows of {short(shard)} ({percent(len(where) / shard.rows)}) are {how} of "
        f"training sequences in {name}, which a comparison as they stand does not see: {rows(shard, where)}",
        place(shard, name),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": name, "share": len(where) / shard.rows, "rows": tuple(int(i) for i in where[:20]),
                  "kind": how.removeprefix("the ").replace(" ", "-"), "shard": short(shard), "files": len(train)},
    )
