"""Two checkpoints of one run: what moved between them, what never did, and what moved alone.

Measured is the norm of the difference over the norm of the first. A frozen beginning (a backbone, an embedding) or a
frozen majority (adapters, a new head) is design. Told are: nothing moved at all; running statistics moved and no weight
did; one block that stood still among blocks before and behind it that moved; a single layer that is not at the
beginning and stood still where nearly everything moved; one block that moved ten times as far as its siblings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_weights.seen import Seen, Stack, apart
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W112",
    name="moved-between-checkpoints",
    title="What moved between two checkpoints is not what should",
    severity=Severity.HIGH,
    sees="Relative norm of the difference of every tensor that both files hold.",
    matters="What stands still is not trained; what moves alone is trained at another rate, or was overwritten.",
    alike=("a backbone frozen on purpose", "adapters", "two files of the same step", "norms folded into layers"),
    confirm=("print requires_grad and whether the optimizer holds the parameter", "compare with a third checkpoint"),
    thresholds={
        "moved": Threshold(0.9, "share of the matrices that moved", "so that one that did not is the exception"),
        "alone": Threshold(10.0, "times the siblings' relative change", "blocks of one stack move alike to three "
                                                                        "times"),
    },
)
_MOVED, _ALONE = 0.9, 10.0
_FEW = 4
"""Blocks below which one that stood still is told only as a whole, between others that moved."""


def check(seen: Seen) -> Iterator[Finding]:
    """The main parts of two files."""
    if seen.other is None or not seen.main or _is_export(seen):
        return
    changes = seen.changes
    weights = {s.name for s in seen.weights} & changes.keys()
    if len(weights) < 2:
        return
    moved = {n for n in weights if changes[n] > 0}
    if not moved:
        yield from _nothing(seen, changes, weights)
        return
    yield from _still_in_stack(seen, changes)
    yield from _still_block(seen, changes)
    yield from _still(seen, weights, moved)
    yield from _further(seen, changes)


def _is_export(seen: Seen) -> bool:
    """Whether the other file holds the weights without the norms: they were folded into what stands before them."""
    assert seen.other is not None
    mine, theirs = ([n for n in part.tensors if n.rpartition(".")[2] in ("running_mean", "running_var")]
                    for part in (seen.part, seen.other.part))
    return bool(mine) and not theirs


def _nothing(seen: Seen, changes: Mapping[str, float], weights: set[str]) -> Iterator[Finding]:
    assert seen.other is not None
    statistics = [n for n, c in changes.items() if c > 0 and n.rpartition(".")[2].startswith(("running_", "moving_"))]
    others = [n for n, c in changes.items() if c > 0 and n not in statistics]
    if others:  # scales or biases alone: a kind of adapter
        return
    other = seen.other.path
    what = (f"none of the {len(weights)} matrices differs between {seen.path} and {other} by a bit; the running "
            f"statistics of {len(statistics)} tensors do" if statistics else
            f"{seen.path} and {other} hold the same values, to the bit, in all {len(changes)} tensors of both: the "
            "same step twice, or nothing was trained between them")
    yield RULE.finding(
        what, Location(file=seen.path), seen.path, bearing=Bearing.CAUSE if statistics else Bearing.SIGN,
        severity=None if statistics else Severity.MEDIUM,
        measured={"kind": "statistics-only" if statistics else "nothing", "weights": len(weights)})


def _still_in_stack(seen: Seen, changes: Mapping[str, float]) -> Iterator[Finding]:
    """Blocks that stood still between blocks that moved."""
    blocks: dict[tuple[str, int], list[str]] = {}
    for stack in seen.stacks:
        known = [(i, s.name) for i, s in zip(stack.indexes, stack.members, strict=True) if s.name in changes]
        if not stack.members[0].tensor.matrix or len(known) < 4:
            continue
        moved = [changes[n] > 0 for _, n in known]
        still = [at for at, m in enumerate(moved) if not m and any(moved[:at])]
        if still and len(still) <= len(known) / 3:
            for at in still:
                blocks.setdefault((stack.pattern, known[at][0]), []).append(known[at][1])
    for (_, index), names in blocks.items():
        yield RULE.finding(
            f"{names[0]} is the same in {seen.path} and {_other(seen)} to the bit, and the same weight of the blocks "
            "before it is not", seen.where(names[0]), seen.path, bearing=Bearing.CAUSE,
            measured={"kind": "block-still", "name": names[0], "block": index})


def _still_block(seen: Seen, changes: Mapping[str, float]) -> Iterator[Finding]:
    """A whole block of two or three that stood still between what moved before and behind it."""
    of_block: dict[tuple[str, str], list[str]] = {}
    for stack in (s for s in seen.stacks_from(2) if len(s) < _FEW):
        head = stack.pattern.partition("*")[0]
        for index, stats in zip(stack.indexes, stack.members, strict=True):
            of_block.setdefault((head, str(index)), []).append(stats.name)
    names = list(seen.part.tensors)
    for (head, number), own in of_block.items():
        whole = [n for n in names if n.startswith(f"{head}{number}.")]
        matrices = [n for n in whole if seen.part.tensors[n].matrix]
        first, last = (names.index(n) for n in (whole[0], whole[-1])) if whole else (0, 0)
        around = [n for n in names if n in changes and n not in whole]
        if len(matrices) < 2 or set(own) - set(whole) or any(changes.get(n, 1.0) > 0 for n in whole):
            continue
        before = [n for n in names[:first] if n.startswith(head) and changes.get(n, 0.0) > 0]
        behind = [n for n in names[last + 1:] if not n.startswith(head) and changes.get(n, 0.0) > 0]
        if before and behind and all(changes[n] > 0 for n in around):
            yield RULE.finding(
                f"all {len(whole)} tensors of {head}{number} are the same in {seen.path} and {_other(seen)} to the "
                "bit; "
                f"what stands before ({before[-1]}) and behind ({behind[0]}), and all {len(around)} other tensors, "
                "moved",
                seen.where(whole[0]), seen.path, bearing=Bearing.CAUSE,
                measured={"kind": "block-still", "name": whole[0], "block": int(number)})


def _other(seen: Seen) -> str:
    return seen.other.path if seen.other is not None else ""


def _still(seen: Seen, weights: set[str], moved: set[str]) -> Iterator[Finding]:
    """Layers without siblings that stood still, behind others that moved."""
    ordered = [s for s in seen.weights if s.name in weights]
    if len(moved) < _MOVED * len(ordered) and len(ordered) - len(moved) > 1:
        return
    for at, stats in enumerate(ordered):
        before = any(s.name in moved for s in ordered[:at])
        if stats.name not in moved and before and stats.name not in seen.stack_of and len(moved) >= 3:
            yield RULE.finding(
                f"{stats.name} is the same in {seen.path} and {_other(seen)} to the bit; {len(moved)} of the "
                f"{len(ordered)} matrices moved", seen.where(stats.name), seen.path, bearing=Bearing.SIGN,
                severity=Severity.MEDIUM, measured={"kind": "layer-still", "name": stats.name})


def _further(seen: Seen, changes: Mapping[str, float]) -> Iterator[Finding]:
    for stack in seen.stacks:
        values = [changes.get(s.name, 0.0) for s in stack.members]
        if stack.members[0].tensor.matrix and not seen.is_table(stack.members[0]) and all(
                0 < v < math.inf for v in values):
            yield from _alone(seen, stack, values)
        elif sum(v > 0 for v in values) == 1 and stack.members[0].tensor.matrix and len(stack) > 4:
            yield from _only(seen, stack, values)


def _alone(seen: Seen, stack: Stack, values: list[float]) -> Iterator[Finding]:
    distance, spread = apart(np.log2(values), 0.15)
    for at in np.flatnonzero(distance > max(math.log2(_ALONE), 6 * spread)):
        name = stack.members[at].name
        yield RULE.finding(
            f"{name} moved by {values[at]:.3g} of its norm between {seen.path} and {_other(seen)}, "
            f"{2 ** distance[at]:.3g} "
            f"times as far as its {len(stack) - 1} siblings ({stack.pattern})", seen.where(name), seen.path,
            bearing=Bearing.SIGN, severity=Severity.MEDIUM,
            measured={"kind": "further", "name": name, "change": values[at], "factor": round(2.0 ** distance[at], 4)})


def _only(seen: Seen, stack: Stack, values: list[float]) -> Iterator[Finding]:
    at = int(np.argmax(values))
    if 0 < at < len(stack) - 1:
        name = stack.members[at].name
        yield RULE.finding(
            f"{name} alone moved between {seen.path} and {_other(seen)}; its {len(stack) - 1} siblings "
            f"({stack.pattern}) "
            "are the same to the bit", seen.where(name), seen.path, bearing=Bearing.SIGN, severity=Severity.MEDIUM,
            measured={"kind": "alone", "name": name, "change": values[at]})
