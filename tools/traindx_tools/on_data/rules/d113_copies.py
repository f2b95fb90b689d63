"""Rows occur twice: in training and in held-out data, or a whole shard again.

Where few distinct rows are possible, as in small categorical tables, rows recur by nature; so the share across splits
is held against the share within the held-out data and within the training data. A stream of tokens has no rows: there
it is windows of tokens that stand in both. Copies within the training data are a
remark: rare classes are often repeated on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.copies import none_recurs, signatures_of_numbers, signatures_of_some, signed_shards
from traindx_tools.on_data.places import percent, place, rows, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.summary import contained, distinct
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.token_windows import ONE_IN, WINDOW, streams_by_split
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

SHARE = 0.005
FEWEST = 5
TIMES, AMONG = 4.0, 2.0
WHOLE = 0.9
REMARK = 0.01
STRETCH = 4 * WINDOW
SOME = 5000
"""Rows of a shard that are looked for in the others: enough to tell a share of nine tenths."""

RULE = Rule(
    id="D113",
    name="copies",
    title="Rows of the held-out data are in the training data",
    severity=Severity.HIGH,
    sees="hashes of the inputs of each row, within and across shards and splits",
    matters="Held-out rows that were trained on are remembered: the score says nothing of new data.",
    alike=("Small tables of categories: rows recur by nature.", "Rare classes repeated on purpose, within training."),
    confirm=("Print the named rows of both files.",),
    thresholds={
        "share": Threshold(SHARE, "of held-out rows", "fewer change no score"),
        "fewest": Threshold(FEWEST, "rows", "fewer may be chance"),
        "times": Threshold(
            TIMES, "times the copies that are expected from within the held-out data", "natural recurrence"
        ),
        "among": Threshold(AMONG, "times the training rows that have a copy among themselves", "natural recurrence"),
        "stretch": Threshold(STRETCH, "tokens behind each other", "of a stream that stand in the training stream"),
        "window": Threshold(WINDOW, "tokens", f"that are compared at once, one beginning in {ONE_IN}"),
        "whole": Threshold(WHOLE, "of a shard's rows", "the shard is a copy"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each pair of splits and of shards that share rows."""
    for data in view.sets:
        yield from _streams(data)
        if none_recurs(data):
            yield from list(_written_otherwise(data)) or _with_other_columns(
                [s for s in data.shards if s.rows and s.columns])
            continue
        made = signed_shards(data)
        signed = {id(s): (digests, telling) for s, digests, telling in made}
        shards = [s for s, _, _ in made]
        known = {id(s): signed[id(s)][0][signed[id(s)][1]] for s in shards}
        found = list(_across(shards, signed, known))
        found = found or list(_written_otherwise(data))
        yield from found or _with_other_columns(shards)
        yield from _copied_shards(shards, known)
        yield from _within(data, shards, known)


def _streams(data: DataSet) -> Iterator[Finding]:
    """Held-out streams of tokens of which a stretch stands in a training stream."""
    for shard, source, found, natural in streams_by_split(data.shards):
        if found.windows < FEWEST or found.length < STRETCH or found.share < max(SHARE, TIMES * natural):
            continue
        yield RULE.finding(
            f"about {percent(found.share)} of the tokens of {short(shard)} stand in {short(source)} in the same order; "
            f"the longest stretch is row {found.begin} to row {found.begin + found.length - 1} (there from row "
            f"{found.there} on)", place(shard), shard.name, bearing=Bearing.CAUSE,
            title="A stretch of the held-out tokens is in the training tokens",
            measured={"share": found.share, "rows": (found.begin, found.begin + found.length - 1),
                      "expected": natural, "kind": "across-splits", "texts": "", "shard": short(shard),
                      "other": short(source)})


def _written_otherwise(data: DataSet) -> Iterator[Finding]:
    """Held-out rows that have all the numbers of a training row, and another text."""
    made = {id(s): signatures_of_numbers(s) for s in data.shards if s.rows and s.columns}
    signed = {k: (digests, rows) for k, (digests, rows, texts) in made.items() if texts}
    shards = [s for s in data.shards if id(s) in signed]
    texts = ", ".join(dict.fromkeys(t for s in shards for t in made[id(s)][2]))
    yield from _across(shards, signed, {k: digests[rows] for k, (digests, rows) in signed.items()}, texts)


def _with_other_columns(shards: list[Shard]) -> Iterator[Finding]:
    """Held-out rows that have the measured numbers of a training row, and other names, times or amounts."""
    signed, others = signatures_of_some(shards)
    yield from _across([s for s in shards if id(s) in signed], signed, {k: v[0] for k, v in signed.items()},
                       ", ".join(others[:6]) + (f" and {len(others) - 6} more" if len(others) > 6 else ""), sure=True)


def _across(
    shards: list[Shard], signed: Mapping[int, tuple[Array, Array]], known: Mapping[int, Array], texts: str = "",
    *, sure: bool = False,
) -> Iterator[Finding]:
    """`texts`: the fields that were left out, where rows are told by their numbers; `sure`: by several fractions."""
    train = [s for s in shards if s.split == "train"]
    if not train:
        return
    every = np.concatenate([known[id(s)] for s in train])
    seen = distinct(every)
    again = _with_a_copy(every)
    for shard in (s for s in shards if s.split not in ("", "train") and len(known[id(s)])):
        mine = known[id(shard)]
        hits = contained(mine, seen)
        natural = 1.0 - len(distinct(mine)) / len(mine)
        expected = max(natural * len(every) / len(mine), AMONG / TIMES * again)
        share = float(hits.mean())
        if hits.sum() < FEWEST or share < SHARE or share < TIMES * min(1.0, expected):
            continue
        where = signed[id(shard)][1][hits]
        held = distinct(mine)
        source = next(s for s in train if contained(known[id(s)], held).any())
        there = signed[id(source)][1][contained(known[id(source)], held)]
        yield RULE.finding(
            f"{int(hits.sum()):,} of {shard.rows:,} rows of {short(shard)} ({percent(share)}) are in the training "
            f"data as well{f' but for {texts}: all other columns are the same' if texts else ''}: "
            f"{rows(shard, where)} (in {short(source)}: {rows(source, there)})",
            place(shard),
            shard.name,
            bearing=Bearing.SIGN if texts and not sure else Bearing.CAUSE,
            severity=Severity.MEDIUM if texts and not sure else None,
            measured={
                "share": share,
                "rows": tuple(int(i) for i in where[:20]),
                "expected": expected,
                "kind": "across-splits",
                "texts": texts,
                "shard": short(shard),
                "other": short(source),
            },
        )


def _with_a_copy(digests: Array) -> float:
    """Share of the rows that another row is a copy of: what a row of the same making finds among them."""
    counts = np.unique(digests, return_counts=True)[1]
    return float(counts[counts > 1].sum() / max(1, len(digests)))


def _copied_shards(shards: list[Shard], known: Mapping[int, Array]) -> Iterator[Finding]:
    """A shard that is another one again, of the same split."""
    sets = {id(s): distinct(known[id(s)]) for s in shards}
    for i, shard in enumerate(shards):
        mine = sets[id(shard)]
        if len(mine) < 20 or len(mine) < 0.5 * shard.rows:
            continue
        some = mine[:: max(1, len(mine) // SOME)]
        for other in shards[:i]:
            if other.split != shard.split or other.name == shard.name:
                continue
            share = float(contained(some, sets[id(other)]).mean())
            if share >= WHOLE:
                yield RULE.finding(
                    f"{percent(share)} of the rows of {short(shard)} are those of {short(other)}",
                    place(shard),
                    shard.name,
                    bearing=Bearing.SIGN,
                    severity=Severity.MEDIUM,
                    title="A shard is a copy of another",
                    measured={"share": share, "kind": "copied-shard", "shard": short(shard), "other": short(other)},
                )
                break


def _within(data: DataSet, shards: list[Shard], known: Mapping[int, Array]) -> Iterator[Finding]:
    for split, group in data.splits.items():
        every = [known[id(s)] for s in shards if s.split == split]
        rows_there = np.concatenate(every) if every else np.empty(0)
        share = 1.0 - len(distinct(rows_there)) / max(1, len(rows_there))
        if share >= REMARK and len(rows_there) >= 50:
            yield RULE.finding(
                f"{percent(share)} of the rows of {data.name}{f' ({split})' if split else ''} are copies of "
                "others in it",
                place(group[0]),
                group[0].name,
                bearing=Bearing.COMPANION,
                severity=Severity.INFO,
                title="Rows occur more than once",
                measured={"share": share, "kind": "within"},
            )
