"""Neighbouring tokens of a file are pairs that the tokeniser beside it would have merged.

A byte-pair encoding merges until no pair of its list stands side by side, so that text which it encoded holds next to
none of them. A file with many was encoded by another tokeniser (of the same size, of an older version), or its ids
were moved: decoded with the one that lies here it is gibberish. No other file is needed to see it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.merges import unmerged
from traindx_tools.on_data.places import percent, place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

LEAST, ALONE, TIMES = 0.002, 0.04, 10.0
FEWEST, PAIRS = 2_000, 50
LONG = 8

RULE = Rule(
    id="D192",
    name="unmerged-pairs",
    title="Tokens are not those of the tokeniser beside them",
    severity=Severity.HIGH,
    sees="how often neighbouring tokens are a pair that tokenizer.json merges, by file",
    matters="The model learns text that the tokeniser turns into gibberish, beside text that it knows.",
    alike=("BPE dropout, which leaves merges out on purpose: then tokenizer.json says so, and nothing is judged.",
           "Tokens of texts that were joined after encoding: a pair stands at each seam, which is little."),
    confirm=("Decode the first hundred tokens of the file with the tokeniser beside it.",),
    thresholds={
        "least": Threshold(LEAST, "share of neighbouring tokens", "encoded by it a file has none within words"),
        "alone": Threshold(ALONE, "share", "of a file that has no sibling to compare with"),
        "times": Threshold(TIMES, "times", "the share of the files beside it, at least"),
        "tokens": Threshold(FEWEST, "tokens", "of a file"),
        "pairs": Threshold(PAIRS, "pairs", "of a file"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """One finding for each file."""
    if view.hints.merges is None:
        return
    where, pairs = view.hints.merges
    for data in view.sets:
        for name in data.fields:
            highest = int(pairs.max())
            shards = [s for s in data.shards if name in s.columns and _tokens(s.columns[name], s.format, highest)]
            seen = [(s, *unmerged(s.columns[name], pairs)) for s in shards]
            shares = {s.name: share for s, share, count, _ in seen if count >= FEWEST}
            for shard, share, count, at in seen:
                others = [v for n, v in shares.items() if n != shard.name]
                usual = float(np.median(others)) if others else 0.0
                least = max(LEAST if others else ALONE, TIMES * usual)
                if count >= FEWEST and len(at) >= PAIRS and share >= least:
                    yield _finding(shard, name, where, (share, usual), at, others)


def _tokens(column: Column, form: str, highest: int) -> bool:
    """Whether a field holds ids of the tokeniser: whole numbers in rows, none far beyond its own."""
    if not column.is_integer or not column.values.size or column.values.dtype.itemsize < 2:
        return False
    rows = column.kind == "sequence" or int(np.prod(column.row_shape)) >= LONG or form.startswith("tokens")
    return rows and int(column.values.max()) < 2 * highest + 2_000 and int(column.values.max()) > 1


def _finding(shard: Shard, name: str, where: str, shares: tuple[float, float], at: Array,
             others: Sequence[float]) -> Finding:
    share, usual = shares
    beside = f", in the files beside it {percent(usual)}" if others else ""
    return RULE.finding(
        f"{percent(share)} of the neighbouring tokens of {name} in {short(shard)} are pairs that {where} "
        f"merges{beside}: the file was encoded by another tokeniser, or its ids were moved (the first at token "
        f"{int(at[0])})",
        place(shard, name),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": name, "share": share, "usual": usual, "shard": short(shard), "kind": "shard"},
    )
