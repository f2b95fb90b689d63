"""The units of one block stand in another order in one matrix than in the others, or the matrix is of another block.

What makes a unit and what reads it have norms that go together, in every block of a trained stack. Where that holds in
all other blocks and is gone in one, though both matrices there are trained, the lines of one of them were sorted or
permuted, or it was taken from elsewhere. Named is the matrix all of whose relations along an axis are gone, while those
among the others hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.line_norms import (
    ERRORS,
    FEWEST_BLOCKS,
    FEWEST_LINES,
    HOLDS,
    SPREADS,
    Lines,
    Relation,
    ranks_of,
    relations,
)
from traindx_tools.on_weights.seen import Seen, Stack
from traindx_tools.rules import Rule, Threshold

_MOST_KINDS, _MOST_BYTES = 16, 2**27
_SURE = 10.0
_AXES = ("rows", "columns")

RULE = Rule(
    id="W154",
    name="units-in-other-order",
    title="Units of one block stand in another order than what reads them expects",
    severity=Severity.HIGH,
    sees="norms of the rows and columns of the matrices of each block that go together in all other blocks",
    matters="Each unit is read with the weights of another one: the block passes noise on.",
    alike=("a block at its initialisation: its norms are all alike, and W104 and W150 tell it",
           "relations that scatter from block to block: they are not asked"),
    confirm=("compare with an earlier checkpoint or the file that this one was converted from, row by row",
             "skip the block: the loss changes little or falls"),
    thresholds={
        "holds": Threshold(HOLDS, "rank correlation", "in every other block"),
        "errors": Threshold(ERRORS, "standard errors", "that the block is below the others' middle (Fisher's z)"),
        "spreads": Threshold(SPREADS, "times the usual scatter", "of the other blocks"),
        "lines": Threshold(FEWEST_LINES, "lines", "fewer go together by chance"),
        "sure": Threshold(_SURE, "standard errors", "from which on one relation is enough for a high finding"),
    },
)


def check(seen: Seen) -> Iterator[Finding]:
    """Each stack of blocks, by what stands before the number."""
    groups: dict[tuple[str, tuple[int, ...]], list[Stack]] = {}
    for stack in seen.stacks_from(FEWEST_BLOCKS):
        if stack.members[0].tensor.matrix and not seen.is_table(stack.members[0]):
            groups.setdefault((stack.pattern.partition("*")[0], stack.indexes), []).append(stack)
    for (head, indexes), stacks in groups.items():
        size = sum(s.tensor.nbytes for stack in stacks for s in stack.members)
        if 2 <= len(stacks) <= _MOST_KINDS and size <= _MOST_BYTES:
            ranks = ranks_of(stacks)
            yield from _odd(seen, head, indexes, stacks, list(relations(ranks)) if ranks is not None else [])


def _odd(seen: Seen, head: str, indexes: Sequence[int], stacks: Sequence[Stack], found: Sequence[Relation]
         ) -> Iterator[Finding]:
    for at in sorted({r.odd for r in found if r.odd is not None}):
        culprits = _culprits(found, at)
        lost = [r for r in found if r.odd == at]
        if culprits:
            yield _finding(seen, f"{head}{indexes[at]}", at, stacks, culprits, lost)


def _culprits(found: Sequence[Relation], at: int) -> list[Lines]:
    """The lines all of whose relations are gone in a block, such that they explain all that is gone there."""
    by_lines: dict[Lines, list[bool]] = {}
    for r in found:
        for lines in (r.one, r.other):
            by_lines.setdefault(lines, []).append(r.odd == at)
    gone = [lines for lines, lost in by_lines.items() if all(lost)]
    gone.sort(key=lambda lines: -len(by_lines[lines]))
    most = [lines for lines in gone if len(by_lines[lines]) == len(by_lines[gone[0]])] if gone else []
    explained = all(r.one in gone or r.other in gone for r in found if r.odd == at)
    return most if explained else []


def _finding(seen: Seen, block: str, at: int, stacks: Sequence[Stack], culprits: Sequence[Lines],
             lost: Sequence[Relation]) -> Finding:
    names: Mapping[Lines, str] = {lines: f"the {_AXES[lines[1]]} of {stacks[lines[0]].members[at].name}"
                                  for r in lost for lines in (r.one, r.other)}
    worst = max(lost, key=lambda r: r.errors)
    others = sorted(r for i, r in enumerate(worst.correlations) if i != at)
    one = len(culprits) == 1
    what = names[culprits[0]] if one else " or ".join(names[c] for c in culprits[:2])
    sure = worst.errors >= _SURE or len(lost) > 1
    return RULE.finding(
        f"{what} in {seen.path} stand in another order than {block} expects, or are of another block: the norms of "
        f"{names[worst.one]} and of {names[worst.other]} correlate with {worst.correlations[at]:.2f}, and those of the "
        f"other {len(others)} blocks with {others[0]:.2f} to {others[-1]:.2f}"
        f"{f'; so do {len(lost) - 1} more relations of this block' if len(lost) > 1 else ''}",
        seen.where(stacks[culprits[0][0]].members[at].name), seen.path,
        bearing=Bearing.CAUSE if sure else Bearing.SIGN, severity=None if sure else Severity.MEDIUM,
        measured={"kind": "order", "name": stacks[culprits[0][0]].members[at].name, "block": block,
                  "tensors": tuple(stacks[c[0]].members[at].name for c in culprits), "relations": len(lost),
                  "correlation": round(worst.correlations[at], 3), "errors": round(worst.errors, 1)})
