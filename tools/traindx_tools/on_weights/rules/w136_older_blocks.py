"""Within one checkpoint the blocks of one shard file, or a run of blocks, are of another step than the rest.

Scales and shifts of normalisation begin at exactly one and zero and move further away with every step, all blocks about
alike. A moving average follows the weights at one distance; the mean of squared gradients falls as the loss does. Where
such distances jump at the edges of a shard, to the same side in all kinds of tensors, and drift everywhere else, that
shard was written at another step. What shards say of themselves in their headers (a step) tells it outright.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.block_runs import Run, apart
from traindx_tools.on_weights.movement import relative_change
from traindx_tools.on_weights.rules.w128_moments_exchanged import moments_by_name
from traindx_tools.on_weights.seen import Seen, Stack, load_tensor, stacks_of
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.on_weights.tensor import Tensor
from traindx_tools.rules import Rule, Threshold

_BLOCKS, _NEAR, _VALUES = 7, 0.5, 2**22

RULE = Rule(
    id="W136",
    name="blocks-of-another-step",
    title="Some blocks are of another step than the rest of the file",
    severity=Severity.HIGH,
    sees="How far scales and shifts are from one and zero, how far an average is from the weights, moments, by block "
         "and by shard; steps in the headers of shards.",
    matters="Blocks that were trained to work with other ones meet strangers: the loss is higher without an error.",
    alike=("a rate of its own for each depth", "blocks unfrozen later", "kinds of blocks that alternate"),
    confirm=("compare the shard with that of the step before and after", "look at the times at which shards were "
             "written", "evaluate with all shards of one step"),
    thresholds={"blocks": Threshold(_BLOCKS, "blocks", "fewer show no usual step between two of them")},
)
_AFFINE = "scales and shifts of normalisation"
_STEP = re.compile(r"(?i)^(?:global_?|train\w*_?)?(?:step|steps|iteration|iter|epoch)s?$")


def check(seen: Seen) -> Iterator[Finding]:
    """Headers, then statistics, one finding."""
    told = list(_headers(seen)) if seen.main else []
    yield from told
    if told:
        return
    for what, kinds in ((_AFFINE, _affine), ("the distances to the average", _averaged),
                        ("the squared gradients of the optimizer", _moments)):
        found = next(_found(seen, what, kinds(seen)), None)
        if found is not None:
            yield found
            return


def _headers(seen: Seen) -> Iterator[Finding]:
    """Steps that shards keep of themselves and that are not all one."""
    said: dict[str, dict[str, str]] = {}
    for key, value in seen.checkpoint.values.items():
        file, _, name = key.rpartition(":")
        if file.startswith("shard ") and _STEP.match(name.rpartition(".")[2]):
            said.setdefault(name, {})[file.removeprefix("shard ")] = str(value)
    for name, files in said.items():
        usual, count = Counter(files.values()).most_common(1)[0]
        odd = {f: v for f, v in files.items() if v != usual}
        first = next((n for n, t in seen.part.tensors.items() if os.path.basename(t.file) in odd), "")
        if odd and first:
            file, value = next(iter(odd.items()))
            yield RULE.finding(
                f"{file} says {name} {value} in its header and {count} of {len(files)} shards say {usual}: they are of "
                f"different steps ({seen.path})", seen.where(first), seen.path, bearing=Bearing.CAUSE,
                measured={"kind": "header", "name": first, "file": file, "said": value, "usual": usual})


Kinds = Sequence[tuple[Stack, Callable[[Stats], float]]]


def _found(seen: Seen, what: str, kinds: Kinds) -> Iterator[Finding]:
    """By the beginning of the stacks' names, each with the blocks that all of its kinds have."""
    groups: dict[tuple[str, tuple[int, ...]], list[tuple[Stack, Callable[[Stats], float]]]] = {}
    for stack, distance in kinds:
        if len(stack) >= _BLOCKS:
            groups.setdefault((stack.pattern.partition("*")[0], stack.indexes), []).append((stack, distance))
    for (head, indexes), members in groups.items():
        values = np.array([[distance(s) for s in stack.members] for stack, distance in members])
        whole = [at for at in range(len(indexes)) if len({stack.members[at].tensor.file for stack, _ in members}) == 1]
        values = values[:, whole]  # a file may end within a block
        members = [m for m, row in zip(members, values, strict=True) if np.isfinite(row).all() and (row > 0).all()]
        values = values[np.isfinite(values).all(axis=1) & (values > 0).all(axis=1)]
        files = [[stack.members[at].tensor.file for at in whole] for stack, _ in members]
        run = apart(np.log2(values), files) if len(members) > 1 else None
        if run is not None:
            own = [members[0][0].members[at] for at in whole]
            yield _finding(seen, what, head, [indexes[at] for at in whole], own, run, len(members))


def _finding(seen: Seen, what: str, head: str, indexes: Sequence[int], own: Sequence[Stats], run: Run,
             kinds: int) -> Finding:
    first, last = indexes[run.first], indexes[run.last]
    blocks = f"{head}{first}" + (f" to {head}{last}" if last != first else "")
    file = os.path.basename(run.file)
    step = "another" if what != _AFFINE else "an earlier" if run.octaves < 0 else "a later"
    where = f", which are those of {file}," if file else ""
    return RULE.finding(
        f"{what} in {blocks}{where} are {2.0 ** run.octaves:.2g} times those of the other blocks in {kinds} kinds of "
        f"tensors, with a jump at the edge (between other blocks at most {2.0 ** run.usual:.2g} times): they are of "
        f"{step} step ({seen.path})", seen.where(own[run.first].name), seen.path,
        bearing=Bearing.SIGN, severity=None if file else Severity.MEDIUM,
        measured={"kind": "shard" if file else "blocks", "name": own[run.first].name, "first": first,
                  "last": last, "factor": round(2.0**run.octaves, 3), "file": file})


def _affine(seen: Seen) -> Kinds:
    """Scales, by their distance from one, and the shifts beside them."""
    found: list[tuple[Stack, Callable[[Stats], float]]] = []
    vectors = [s for s in seen.stacks_from(_BLOCKS) if not s.members[0].tensor.matrix]
    scales = [s for s in vectors if s.members[0].size > 1 and all(
        m.low > 1 - _NEAR and m.high < 1 + _NEAR and not m.constant for m in s.members)]
    modules = {s.pattern.rpartition(".")[0] for s in scales}
    found += [(s, _from_one) for s in scales]
    found += [(s, lambda m: m.rms) for s in vectors if s not in scales and s.pattern.rpartition(".")[0] in modules
              and all(m.high < _NEAR and m.low > -_NEAR for m in s.members)]
    return found


def _from_one(stats: Stats) -> float:
    values = load_tensor(stats.tensor, _VALUES)
    return float(np.sqrt(((values - 1) ** 2).mean())) if values is not None else np.nan


def _averaged(seen: Seen) -> Kinds:
    """Matrices by their distance from those of the same name in another part of the file."""
    if not seen.main:
        return []
    for part in seen.checkpoint.parts:
        if part is not seen.part and not part.auxiliary and seen.part.tensors.keys() <= part.tensors.keys():
            return [(s, partial(_distance, other=part.tensors)) for s in stacks_of(seen.weights, _BLOCKS)]
    return []


def _distance(stats: Stats, other: Mapping[str, Tensor]) -> float:
    beside = other[stats.name]
    return relative_change(stats.tensor, beside) if beside.shape == stats.tensor.shape else np.nan


def _moments(seen: Seen) -> Kinds:
    """The mean of squared gradients, under the names of their weights."""
    if not seen.main or not seen.moments:
        return []
    by_name = {n: m.second for n, m in moments_by_name(seen).items() if m.second is not None}
    return [(s, lambda m: by_name[m.name].rms if m.name in by_name else np.nan)
            for s in seen.stacks_from(_BLOCKS)]
