"""A block or a layer is still what its initialiser drew, among others that were trained.

Evidence is exact: values inside an initialiser's bound that reach it (uniform, cut normal), the deviation of a normal
initialiser to three standard errors where all siblings are far from it, a bias of exactly zero or a scale of exactly
one where the siblings' are not, largest singular values at the edge of noise where the siblings' are above it. A block
needs two such tensors; a layer without siblings needs a sharp one, and only where nearly everything else of the file is
trained and it does not stand at the beginning: what is frozen on purpose does, and so does a fixed random projection.
Beside projections of zeros, as adapters and control branches begin with, a fresh layer is part of a start: low.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.initialisers import FEWEST, errors_from, normally_drawn, sharply_drawn
from traindx_tools.on_weights.seen import Seen, Stack
from traindx_tools.on_weights.spectra import above_edge
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W104",
    name="left-at-initialisation",
    title="A part of the model was never trained or never loaded",
    severity=Severity.HIGH,
    sees="Bounds and spread of each tensor against those of the usual initialisers, and against its siblings.",
    matters="Loading skipped these names, or the optimizer never had them: the block passes noise on.",
    alike=("a frozen random projection", "a new head before fine-tuning", "an adapter before its first step"),
    confirm=("compare with an earlier checkpoint: the tensor has not moved", "print what load_state_dict returns"),
    thresholds={
        "siblings": Threshold(0.75, "share of the siblings that are not at their initialisation", "one odd block"),
        "others": Threshold(0.8, "share of all other matrices that are not", "a frozen backbone is most of a file"),
    },
)
_SIBLINGS, _OTHERS = 0.75, 0.8
_LEFT = 0.05
"""Share by which the siblings' largest value must be off a bound."""
_FAR = 10.0
"""Standard errors by which siblings must be off a normal initialiser's deviation."""
_EDGE, _CLEAR = 0.5, 1.0
"""Tolerances above the edge of noise that a fresh matrix stays below; by how many its siblings are above it."""
_MOST_SPECTRA = 2**25
"""Bytes of stacks whose spectra are looked at."""


def check(seen: Seen) -> Iterator[Finding]:
    """Blocks of stacks, then layers that have no siblings."""
    blocks: dict[tuple[str, int], list[tuple[Stats, str]]] = {}
    matrices: dict[tuple[str, int], int] = {}
    for stack in seen.stacks:
        head = stack.pattern.partition("*")[0]
        for index, stats in zip(stack.indexes, stack.members, strict=True):
            if stats.tensor.matrix and stats.size >= FEWEST:
                matrices[head, index] = matrices.get((head, index), 0) + 1
        for at, why in _odd(seen, stack):
            blocks.setdefault((head, stack.indexes[at]), []).append((stack.members[at], why))
    for (head, index), found in sorted(blocks.items()):
        if _whole(found, matrices.get((head, index), 0)) or _constants(seen, found, f"{head}{index}."):
            yield _block(seen, f"{head}{index}", found)
    told = {head + str(index) for (head, index), found in blocks.items()
            if _whole(found, matrices.get((head, index), 0)) or _constants(seen, found, f"{head}{index}.")}
    yield from _vectors(seen, told)
    yield from _spectra(seen, told)
    yield from _alone(seen)


def _vectors(seen: Seen, told: set[str]) -> Iterator[Finding]:
    """Blocks whose scales are all exactly one and biases all exactly zero where those of the siblings are not.

    Exact evidence that needs no initialiser of the matrices to be known, and three blocks only. Two vectors are enough
    where the matrices are noise by their spectrum.
    """
    for head, kinds in _kinds(seen, matrices=False).items():
        blocks = sorted({i for kind in kinds for i in kind})
        for index in blocks:
            own = [kind[index] for kind in kinds if index in kind]
            if f"{head}{index}" in told or not all(s.constant and s.low in (0.0, 1.0) for s in own):
                continue
            odd = [k[index] for k in kinds if index in k and _alone_constant(k, index)]
            values = {s.low for s in odd}
            noise = [s for s in _matrices(seen, f"{head}{index}.") if s.size >= FEWEST]
            exact = len(odd) >= 3 and values == {0.0, 1.0}
            if exact or (len(odd) >= 2 and 1.0 in values and noise and all(map(_noise, noise))):
                told.add(f"{head}{index}")
                yield _block(seen, f"{head}{index}", [(s, f"all {s.low:g}") for s in odd])


def _kinds(seen: Seen, *, matrices: bool) -> dict[str, list[dict[int, Stats]]]:
    """The stacks of vectors or of matrices by what stands before the number of the block."""
    found: dict[str, list[dict[int, Stats]]] = {}
    for stack in seen.stacks_from(3):
        first = stack.members[0]
        if first.tensor.matrix == matrices and first.size >= 4 and not seen.is_table(first):
            found.setdefault(stack.pattern.partition("*")[0], []).append(
                dict(zip(stack.indexes, stack.members, strict=True)))
    return found


def _alone_constant(kind: Mapping[int, Stats], index: int) -> bool:
    """Whether nearly all siblings of a constant vector have moved."""
    others = [s for i, s in kind.items() if i != index]
    return sum(not s.constant for s in others) >= _SIBLINGS * len(others)


def _matrices(seen: Seen, block: str) -> list[Stats]:
    return [s for s in seen.weights if s.name.startswith(block)]


def _vectors_in(seen: Seen, block: str) -> list[Stats]:
    return [s for s in seen.floats if not s.tensor.matrix and s.name.startswith(block) and s.size >= 4]


def _noise(stats: Stats) -> bool:
    """Whether a matrix is noise: a known draw, or by its spectrum."""
    above = above_edge(stats)
    return above <= 1.0 if above is not None else bool(sharply_drawn(stats) or normally_drawn(stats))


def _spectra(seen: Seen, told: set[str]) -> Iterator[Finding]:
    """Blocks all of whose matrices are noise by their spectrum where those of nearly all siblings are not.

    For blocks without scales and biases, or with such that no step has moved.
    """
    for head, kinds in _kinds(seen, matrices=True).items():
        small = sum(s.tensor.nbytes for kind in kinds for s in kind.values()) <= _MOST_SPECTRA
        if len(kinds) < 3 or not small or "expert" in head.lower():
            continue
        above = [{i: a for i, s in kind.items() if (a := above_edge(s)) is not None} for kind in kinds]
        for index in sorted({i for kind in above for i in kind}):
            known = [(kind, found) for kind, found in zip(kinds, above, strict=True) if index in found]
            noise = f"{head}{index}" not in told and len(known) >= 3 and _lowest([found for _, found in known], index)
            if noise and all(s.constant for s in _vectors_in(seen, f"{head}{index}.")):
                yield _block(seen, f"{head}{index}", [(kind[index], "noise by its spectrum") for kind, _ in known])


def _lowest(above: list[dict[int, float]], index: int) -> bool:
    """Whether one block is noise in each kind and the lowest of all, and nearly all siblings are clearly above it."""
    own = [kind[index] for kind in above]
    if max(own) > _EDGE or any(kind[index] > min(kind.values()) for kind in above):
        return False
    others = [i for i in above[0] if i != index and all(i in kind for kind in above)]
    clear = sum(float(np.mean([kind[i] for kind in above])) > float(np.mean(own)) + _CLEAR for i in others)
    return len(others) >= 3 and clear >= _SIBLINGS * len(others)


def _whole(found: list[tuple[Stats, str]], matrices: int) -> bool:
    """Whether a block is untouched: two tensors at least, and all of its matrices; single ones may move late."""
    own = sum(s.tensor.matrix for s, _ in found)
    return len(found) >= 2 and own >= max(1, matrices)


def _constants(seen: Seen, found: list[tuple[Stats, str]], block: str) -> bool:
    """Whether three vectors or more are what they begin with, and no matrix of the block is off an initialiser.

    In the first hundred steps the spread of a matrix hardly changes; a scale of exactly one is gone after the first.
    """
    vectors = sum(not s.tensor.matrix for s, _ in found)
    own = [s for s in seen.weights if s.name.startswith(block) and s.size >= FEWEST]
    return vectors >= 3 and bool(own) and all(sharply_drawn(s) or normally_drawn(s) for s in own)


def _odd(seen: Seen, stack: Stack) -> Iterator[tuple[int, str]]:
    """The members that are at their initialisation where the others are not, each with how it is seen."""
    if seen.is_table(stack.members[0]):
        return
    if stack.members[0].tensor.matrix:
        why = {i: told for i, s in enumerate(stack.members) if (told := _untouched(s, stack))}
    else:
        why = {i: f"all {s.low:g}" for i, s in enumerate(stack.members) if s.low in (0.0, 1.0) and s.constant}
    if why and len(why) <= (1 - _SIBLINGS) * len(stack):
        yield from why.items()


def _untouched(stats: Stats, stack: Stack) -> str:
    others = [s for s in stack.members if s is not stats]
    sharp = sharply_drawn(stats)
    if sharp is not None:  # the others must have left it by more than the first steps do
        left = sum(abs(s.largest / stats.largest - 1) > _LEFT for s in others)
        return sharp.name if left >= _SIBLINGS * len(others) else ""
    normal = normally_drawn(stats)
    if normal is None:
        return ""
    far = sum(errors_from(s, normal[1]) > _FAR for s in others)
    return normal[0] if far >= _SIBLINGS * len(others) else ""


def _block(seen: Seen, block: str, found: list[tuple[Stats, str]]) -> Finding:
    names = [f"{s.name} ({why})" for s, why in found]
    values = sum(s.size for s, _ in found)
    return RULE.finding(
        f"{block} in {seen.path} is still at its initialisation and the blocks beside it are not: "
        f"{', '.join(names[:4])}"
        f"{f' and {len(names) - 4} more' if len(names) > 4 else ''}; {values:,} values",
        seen.where(found[0][0].name), seen.path, bearing=Bearing.CAUSE,
        measured={"name": block, "tensors": tuple(s.name for s, _ in found), "values": values, "kind": "block"})


def _moved_with(seen: Seen, stats: Stats) -> bool:
    """Whether its bias has left the bound, or another tensor is like it: a moving average follows slowly."""
    bias = seen.bias_of(stats.name)
    if bias is not None and not bias.constant and bias.largest > stats.largest * 1.05:
        return True
    x = stats.sample
    alike = [s for s in seen.weights if s is not stats and s.tensor.shape == stats.tensor.shape and s.deviation > 0]
    return any(abs(np.corrcoef(x, s.sample)[0, 1]) > 0.5 for s in alike)


def _alone(seen: Seen) -> Iterator[Finding]:
    """Layers that have no siblings, where they are few."""
    drawn = {s.name: sharply_drawn(s) for s in seen.weights if s.size >= 1024}
    fresh = [s for s in seen.weights if drawn.get(s.name) is not None]
    single = [s for s in fresh if s.name not in seen.stack_of]
    others = len(drawn) - len(fresh)
    if not single or others < 4 or others < _OTHERS * len(drawn):
        return
    first = next(iter(drawn))
    zeros = sum(s.tensor.matrix and s.constant and s.low == 0.0 for s in seen.floats)
    start = (f"; so are {zeros} matrices of zeros: right where training starts from this file, wrong where it ended"
             if zeros else "")
    for stats in single:
        told = drawn[stats.name]
        if told is not None and stats.name != first and not _moved_with(seen, stats):
            yield RULE.finding(
                f"{stats.name} in {seen.path} is still a draw of {told.name} to the last digit (largest value "
                f"{stats.largest:.6g}), and {others} of the {len(drawn) - 1} other matrices are not{start}",
                seen.where(stats.name), seen.path, bearing=Bearing.SIGN,
                severity=Severity.LOW if start else Severity.MEDIUM,
                measured={"name": stats.name, "drawn": told.name, "values": stats.size, "kind": "layer"})
