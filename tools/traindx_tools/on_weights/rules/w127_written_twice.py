"""Some layers stand in the file twice, under two names, and their siblings stand there once.

Training does not arrive twice at the same numbers. Where one block of an encoder equals one of the decoder, one block
holds the same matrix as its query and as its key, or some layers are there again under another prefix, a renaming or a
merge wrote them to two places: one of the two is not what was trained. What all blocks do (queries that are shared
with keys), whole models (moving averages, target networks, weights that are written with and without a wrapper) and
tied tables are design.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.rules import Rule, Threshold

_MOST_EQUAL = 3
"""Names of one tensor, beyond which sharing is how the model is made."""
_FEWEST = 3
"""Blocks of a stack."""
_PART = 0.5
"""Share of the blocks that may be there twice."""
_NUMBER = re.compile(r"\d+")

RULE = Rule(
    id="W127",
    name="written-twice",
    title="Some layers stand in the file under two names",
    severity=Severity.MEDIUM,
    sees="Matrices of different names, bit by bit where their sums agree, and whether their siblings do the same.",
    matters="What was trained under one of the two names is gone, or loading by name keeps the wrong one.",
    alike=(
        "weights that are shared in all blocks",
        "moving averages, target networks, a file with and without a wrapper's prefix: all of it is there twice",
        "tied tables",
    ),
    confirm=("compare both names with an earlier checkpoint", "look for the code that renames or merges the keys"),
    thresholds={
        "part": Threshold(_PART, "share of the blocks", "that may do it: where more do, it is how the model is made"),
        "blocks": Threshold(_FEWEST, "blocks", "fewer tell no usual one"),
    },
)


def check(seen: Seen) -> Iterator[Finding]:
    """A finding for each pair of modules."""
    by_kinds: dict[tuple[str, str], list[tuple[Stats, Stats]]] = {}
    for one, other in _equal(seen):
        kinds = (_NUMBER.sub("*", one.name), _NUMBER.sub("*", other.name))
        if kinds[0] != kinds[1]:  # within a stack W115 tells it
            by_kinds.setdefault(kinds, []).append((one, other))
    told: dict[tuple[str, str], list[tuple[Stats, Stats]]] = {}
    for kinds, pairs in by_kinds.items():
        blocks = [sum(_NUMBER.sub("*", s.name) == kind and s.tensor.shape == pairs[0][0].tensor.shape
                      for s in seen.floats) for kind in kinds]
        if max(blocks) >= _FEWEST and len(pairs) <= _PART * max(blocks) - 0.5:
            for one, other in pairs:
                told.setdefault(_modules(one.name, other.name), []).append((one, other))
    for modules, pairs in told.items():
        yield _finding(seen, modules, pairs)


def _equal(seen: Seen) -> Iterator[tuple[Stats, Stats]]:
    """Pairs of matrices that are the same to the bit and do not share their bytes."""
    alike: dict[tuple[object, ...], list[Stats]] = {}
    for stats in seen.weights:
        if not stats.constant and stats.size >= 16:
            sampled = hash((stats.sample.astype(np.float64) + 0.0).tobytes())
            key = (stats.tensor.shape, stats.tensor.dtype, stats.squares, stats.low, stats.high, sampled)
            alike.setdefault(key, []).append(stats)
    for group in alike.values():
        if 2 <= len(group) <= _MOST_EQUAL:
            for one, other in combinations(group, 2):
                shared = one.tensor.storage is not None and one.tensor.storage == other.tensor.storage
                if not shared and all((a == b).all() for a, b in zip(one.tensor.raw(), other.tensor.raw(),
                                                                     strict=True)):
                    yield one, other


def _modules(one: str, other: str) -> tuple[str, str]:
    """Both names without what they have in common at the end: the modules that hold the same."""
    a, b = re.split(r"[./]", one), re.split(r"[./]", other)
    while len(a) > 1 and len(b) > 1 and a[-1] == b[-1] and not a[-1].isdigit():
        a.pop()
        b.pop()
    return ".".join(a), ".".join(b)


def _finding(seen: Seen, modules: tuple[str, str], pairs: Sequence[tuple[Stats, Stats]]) -> Finding:
    names = ", ".join(f"{a.name} and {b.name}" for a, b in pairs[:3])
    more = f" and {len(pairs) - 3} more" if len(pairs) > 3 else ""
    values = sum(a.size for a, _ in pairs)
    return RULE.finding(
        f"{modules[0]} and {modules[1]} in {seen.path} hold the same {len(pairs)} "
        f"{'matrices' if len(pairs) > 1 else 'matrix'} to the bit ({values:,} values: {names}{more}), and other blocks "
        "do not: they were written twice, and one of the two is not its own",
        seen.where(pairs[0][1].name), seen.path, bearing=Bearing.CAUSE,
        measured={"name": modules[1], "other": modules[0], "tensors": len(pairs), "kind": "written-twice"})
