"""Two blocks of a stack are the same to the bit, and the others are not.

Initialisers do not draw twice the same, and training does not arrive twice at the same: one block was loaded from its
neighbour's names (an offset by one), or the two are one module by mistake. A part of a block, such as its attention,
counts as well. A run of blocks that equals another run, as the part of a rank that was merged twice does, counts where
it is less than a third of the stack. Members among which a router chooses are told apart by the first step: copies of
which it counted any were written over each other. Stacks that share all blocks, copy all of them (experts made from one
layer), repeat every second one or a large part (models deepened by their own blocks) are design and left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, islice

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.routed import routed_copies
from traindx_tools.on_weights.seen import FEWEST_SIBLINGS, Groups, Seen, Stack
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
    told = {s.name for members in pairs.values() for s in members}
    yield from _routed(seen, [g for g in seen.alike if not told & {s.name for _, s in g[1]}])


def _routed(seen: Seen, groups: Groups) -> Iterator[Finding]:
    """Members that a router tells apart and that are copies all the same; each router's once."""
    found: dict[str, list[tuple[Stack, Sequence[tuple[int, int]]]]] = {}
    for pattern, members in groups:
        if len(members) >= FEWEST_SIBLINGS:
            stack = Stack(pattern, tuple(i for i, _ in members), tuple(s for _, s in members))
            pairs = _all_pairs(seen, stack)
            router = routed_copies(seen, pattern, stack.indexes, pairs) if pairs else ""
            if router:
                found.setdefault(router, []).append((stack, pairs))
    for router, stacks in found.items():
        yield _copies(seen, router, stacks)


def _equal_pairs(seen: Seen, stack: Stack) -> Sequence[tuple[int, int]]:
    equal = _all_pairs(seen, stack)
    return equal if len(equal) == 1 or _is_a_run(equal, len(stack)) else ()


def _all_pairs(seen: Seen, stack: Stack) -> Sequence[tuple[int, int]]:
    """Members that are equal, by their places in the stack."""
    if not stack.members[0].tensor.matrix or seen.is_table(stack.members[0]):
        return ()
    alike: dict[tuple[float | int, ...], list[int]] = {}
    for at, stats in enumerate(stack.members):
        if not stats.constant:
            sampled = hash((stats.sample.astype(np.float64) + 0.0).tobytes())
            alike.setdefault((stats.squares, stats.low, stats.high, sampled), []).append(at)
    pairs = (p for group in alike.values() for p in combinations(group, 2))
    return list(islice((p for p in pairs if _equal(stack.members[p[0]], stack.members[p[1]])), _MOST_PAIRS))


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


def _copies(seen: Seen, router: str, stacks: Sequence[tuple[Stack, Sequence[tuple[int, int]]]]) -> Finding:
    stack, pairs = stacks[0]
    names = [s.members[b].name for s, found in stacks for _, b in found]
    head = stack.pattern.partition("*")[0]
    told = ", ".join(f"{stack.indexes[b]} = {stack.indexes[a]}" for a, b in pairs[:4])
    copies = len({b for _, b in pairs})
    return RULE.finding(
        f"{copies} of {len(stack)} members of {stack.pattern} are copies of others to the bit ({told}; {len(names)} "
        f"matrices), although {router} sends other inputs to each: a step would have told them apart ({seen.path})",
        seen.where(stack.members[pairs[0][1]].name), seen.path,
        bearing=Bearing.CAUSE, measured={"name": f"{head}{stack.indexes[pairs[0][1]]}", "router": router,
                                         "other": f"{head}{stack.indexes[pairs[0][0]]}", "tensors": len(names)})
