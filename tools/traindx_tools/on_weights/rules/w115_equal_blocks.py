"""Two blocks of a stack are the same to the bit, and the others are not.

Initialisers do not draw twice the same, and training does not arrive twice at the same: one block was loaded from its
neighbour's names (an offset by one), or the two are one module by mistake. A part of a block, such as its attention,
counts as well. A run of blocks that equals another run, as the part of a rank that was merged twice does, counts where
it is less than a third of the stack. Stacks that share all blocks, copy all of them (experts made from one layer),
repeat every second one or a large part (models deepened by their own blocks) are design and left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, islice

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.seen import Seen, Stack
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.rules import Rule

RULE = Rule(
    id="W115",
    name="equal-blocks",
    title="Two blocks hold the same weights",
    severity=Severity.HIGH,
    sees="Matrices of the blocks of a stack, bit by bit where their sums agree.",
    matters="One of the two was overwritten by the other: what it had learned is gone.",
    alike=("layers shared by design (all of them are)", "a model deepened by copying its blocks"),
    confirm=("compare the block with an earlier checkpoint", "look for an offset in the code that renames keys"),
)
_MOST_PAIRS = 64
_RUN = 1 / 3
"""Share of a stack from which on copies are how it was deepened (Kim et al., SOLAR 10.7B, 2023, copies a third)."""


def check(seen: Seen) -> Iterator[Finding]:
    """Stacks of matrices in which one pair is equal, or one run equals another, told once a pair of blocks."""
    pairs: dict[tuple[str, int, int], list[Stats]] = {}
    for stack in seen.stacks_from(3):
        for at, to in _equal_pairs(seen, stack):
            head = stack.pattern.partition("*")[0]
            pairs.setdefault((head, stack.indexes[at], stack.indexes[to]), []).append(stack.members[to])
    for (head, one, other), members in pairs.items():
        yield _finding(seen, head, one, other, members)


def _equal_pairs(seen: Seen, stack: Stack) -> Sequence[tuple[int, int]]:
    if not stack.members[0].tensor.matrix or seen.is_table(stack.members[0]):
        return ()
    alike: dict[tuple[float | int, ...], list[int]] = {}
    for at, stats in enumerate(stack.members):
        if not stats.constant:
            sampled = hash((stats.sample.astype(np.float64) + 0.0).tobytes())
            alike.setdefault((stats.squares, stats.low, stats.high, sampled), []).append(at)
    pairs = (p for group in alike.values() for p in combinations(group, 2))
    equal = list(islice((p for p in pairs if _equal(stack.members[p[0]], stack.members[p[1]])), _MOST_PAIRS))
    return equal if len(equal) == 1 or _is_a_run(equal, len(stack)) else ()


def _is_a_run(pairs: Sequence[tuple[int, int]], blocks: int) -> bool:
    """Whether blocks that follow each other equal others as far behind, and are a small part of the stack."""
    if not pairs or len(pairs) >= _RUN * blocks or len({b - a for a, b in pairs}) > 1:
        return False
    first = [a for a, _ in pairs]
    return pairs[0][1] - pairs[0][0] >= len(pairs) and first == list(range(first[0], first[0] + len(pairs)))


def _equal(one: Stats, other: Stats) -> bool:
    if one.tensor.storage is not None and one.tensor.storage == other.tensor.storage:
        return True
    return all((a == b).all() for a, b in zip(one.tensor.raw(), other.tensor.raw(), strict=True))


def _finding(seen: Seen, head: str, one: int, other: int, members: Sequence[Stats]) -> Finding:
    names = ", ".join(s.name for s in members[:3]) + (f" and {len(members) - 3} more" if len(members) > 3 else "")
    values = sum(s.size for s in members)
    return RULE.finding(
        f"blocks {head}{one} and {head}{other} in {seen.path} hold the same {len(members)} matrices to the bit "
        f"({values:,} values: {names}), and other blocks do not",
        seen.where(members[0].name), seen.path, bearing=Bearing.CAUSE,
        measured={"name": f"{head}{other}", "other": f"{head}{one}", "tensors": len(members)})
