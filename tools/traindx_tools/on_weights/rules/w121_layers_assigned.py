"""Between two checkpoints the blocks of a stack are in other places: block k of the one is block k + 1 of the other.

Fine-tuning and conversion leave each block more like itself than like any other: its matrices correlate with their
earlier selves, and matrices of different blocks do not correlate at all. For each block the most alike one of the other
file is looked up; all kinds of matrices of the block must agree on it. A file with another number of blocks was cut or
deepened, which is told as a remark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.renaming import match
from traindx_tools.on_weights.seen import Seen, Stack
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W121",
    name="layers-assigned-elsewhere",
    title="Blocks of a stack hold the weights of other blocks",
    severity=Severity.HIGH,
    sees="Correlation of the matrices of each block with those of every block of the other file.",
    matters="Each block gets what another one learned to read, and one of them keeps a fresh draw.",
    alike=("a model cut or deepened on purpose", "two different trainings: nothing correlates",
           "layers shared by design: all correlate"),
    confirm=("load with the renaming undone and evaluate", "print the numbers in the map of names that converted it"),
    thresholds={
        "like": Threshold(0.3, "correlation with the other block", "fine-tuned blocks stay above 0.9"),
        "apart": Threshold(0.2, "more than with its own place", "chance gives a few hundredths"),
        "errors": Threshold(8.0, "standard errors of a correlation of independent values", "small matrices"),
        "kinds": Threshold(0.75, "share of the block's matrices that agree", "one tensor alone is of W119"),
    },
)
_LIKE, _APART, _ERRORS, _KINDS = 0.3, 0.2, 8.0, 0.75
_FEWEST, _BLOCKS = 64, 3


@dataclass(frozen=True)
class _Place:
    """Where one matrix of a block is found in the other file."""

    block: int | None
    like: float
    own: float
    name: str


def check(seen: Seen) -> Iterator[Finding]:
    """Stacks of matrices that both files hold, by what stands before the number of the block."""
    if seen.other is None or not seen.main:
        return
    partner = dict(match(seen.part.tensors, seen.other.part.tensors).pairs)
    theirs = {s.name: stack for stack in seen.other.stacks_from(_BLOCKS) for s in stack.members}
    heads: dict[str, dict[int, list[_Place]]] = {}
    counts: dict[str, tuple[int, int]] = {}
    for stack in seen.stacks_from(_BLOCKS):
        first = stack.members[0]
        name = next((partner[s.name] for s in stack.members if s.name in partner), None)
        other = theirs.get(name) if name is not None else None
        if other is None or not first.tensor.matrix or first.size < _FEWEST or seen.is_table(first):
            continue
        head = stack.pattern.partition("*")[0]
        counts[head] = len(stack), len(other)
        for index, place in _places(stack, other).items():
            heads.setdefault(head, {}).setdefault(index, []).append(place)
    for head, blocks in heads.items():
        yield from _judged(seen, head, blocks, counts[head])


def _standardised(stack: Stack) -> NDArray[np.float64]:
    """Samples of the members as rows of mean 0 and norm 1; a constant one is a row of zeros."""
    rows = np.stack([np.where(np.isfinite(s.sample), s.sample, 0.0).astype(np.float64).reshape(-1)
                     for s in stack.members])
    rows -= rows.mean(axis=1, keepdims=True)
    norm = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norm > 0, norm, np.inf))


def _places(stack: Stack, other: Stack) -> Mapping[int, _Place]:
    """For each block the one of the other file that it is most alike; None where it is like none."""
    a, b = _standardised(stack), _standardised(other)
    likeness = a @ b.T
    least = max(_LIKE, _ERRORS / a.shape[1] ** 0.5)
    at = {index: column for column, index in enumerate(other.indexes)}
    found = {}
    for row, index in enumerate(stack.indexes):
        best = int(likeness[row].argmax())
        like, own = float(likeness[row, best]), float(likeness[row, at[index]]) if index in at else 0.0
        known = like > least and like - np.sort(likeness[row])[-2] > _APART
        found[index] = _Place(other.indexes[best] if known else None, like, own, stack.members[row].name)
    return found


def _judged(seen: Seen, head: str, blocks: Mapping[int, list[_Place]], counts: tuple[int, int]) -> Iterator[Finding]:
    """Blocks whose matrices agree on one other place."""
    moved: dict[int, int] = {}
    for index, places in blocks.items():
        block, votes = Counter(p.block for p in places).most_common(1)[0]
        if block is not None and block != index and votes >= max(1, _KINDS * len(places)):
            moved[index] = block
    kinds = max(len(p) for p in blocks.values())
    if len(moved) < 2 or (kinds == 1 and len(moved) < _BLOCKS):
        return
    assert seen.other is not None
    places = [p for i in moved for p in blocks[i] if p.block == moved[i]]
    found = set(moved.values()) | {i for i, ps in blocks.items() if any(p.block == i for p in ps)}
    fresh = sorted(i for i in blocks if i not in found)
    offsets = {b - i for i, b in moved.items()}
    ordered = sorted(moved)
    if len(offsets) == 1:
        what = (f"{_span(head, ordered)} of {seen.path} are {_span(head, sorted(moved.values()))} of {seen.other.path} "
                f"(blocks off by {abs(min(offsets))})")
    else:
        listed = ", ".join(f"{head}{i} is {head}{moved[i]}" for i in ordered[:6])
        more = f" and {len(ordered) - 6} more" if len(ordered) > 6 else ""
        what = f"blocks of {seen.path} are others of {seen.other.path}: {listed}{more}"
    alone = f"; {', '.join(f'{head}{i}' for i in fresh[:4])} of {seen.other.path}: none of them" if fresh else ""
    name = places[0].name
    yield RULE.finding(
        f"{what}: their matrices correlate by {np.median([p.like for p in places]):.2f} ({name} first), and by "
        f"{np.median([p.own for p in places]):.2f} at their own place{alone}",
        seen.where(name), seen.path, bearing=Bearing.CAUSE if counts[0] == counts[1] else Bearing.SIGN,
        severity=None if counts[0] == counts[1] else Severity.INFO,
        measured={"kind": "offset" if len(offsets) == 1 else "order", "name": name, "blocks": len(moved),
                  "of": len(blocks), "offset": next(iter(offsets)) if len(offsets) == 1 else None})


def _span(head: str, indexes: list[int]) -> str:
    return f"{head}{indexes[0]}..{indexes[-1]}"
