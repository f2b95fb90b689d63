"""An average of the weights is too small throughout: it began at zero, and was not corrected for its beginning.

An average with decay d that began at zero holds 1 - d^n of what it averages after n updates. Weights that have hardly
moved for long, or that began far from zero as scales of normalisations do, show that factor nearly alone; those that
still grow lie further behind. In an average that began as a copy of the weights, or was corrected, what hardly moves is
equal to the weights, however far the rest lies behind.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import permutations

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_weights.averages import Beside, averages_of
from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.common_factor import Ratio, known_factor, ratios, steps_of
from traindx_tools.on_weights.measuring import measure_all
from traindx_tools.on_weights.seen import NORM_SUFFIXES
from traindx_tools.on_weights.tensor import Tensor
from traindx_tools.rules import Rule, Threshold

_REST, _FEWEST = 0.1, 4
_SHARE = 0.2
_NEAR, _FAR, _ABOVE = 0.06, 0.06, 0.08
_SMALLEST = 0.02
_MOST_BYTES = 2**28
"""Of an average and its weights, and of all that are asked."""

RULE = Rule(
    id="W173",
    name="average-from-zero",
    title="An average of the weights began at zero and was not corrected",
    severity=Severity.HIGH,
    sees="The factor of each tensor of an average beside that of the weights, and what the factor leaves: the tensors "
         "that differ by hardly more than a factor, and whether any other one is nearer to its weights.",
    matters="What is evaluated or sampled from is a shrunken network: outputs, scales and biases are too small.",
    alike=("an average that began as a copy of the weights: what hardly moves is equal",
           "weights that grow fast: their average lies behind by shares of their own", "a corrected average"),
    confirm=("divide the average by the factor in a copy and evaluate", "print 1 - decay ** updates"),
    thresholds={
        "rest": Threshold(_REST, "of the norm", "that the factor may leave: there the weights have hardly turned"),
        "fewest": Threshold(_FEWEST, "tensors", "with so little left, matrices and vectors"),
        "near": Threshold(_NEAR, "spread of their factors", "what still grows lies behind by a few hundredths"),
        "far": Threshold(_FAR, "distance of the factor from one", "below, the average has forgotten its beginning"),
        "above": Threshold(_ABOVE, "by which that of another tensor may be larger", "and none equals its weights"),
    },
)


def check_files(read: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Averages beside their weights in one file, and files of which one is called an average. Raises UnreadableInput.
    """
    left = _MOST_BYTES
    for one in read:
        steps = steps_of([one])
        for beside in averages_of(one):
            left -= sum(t.nbytes for t in beside.average.values()) if not beside.target else 0
            if not beside.target and left >= 0:
                yield from _judged(one, beside, steps, beside.of or "the weights")
    for average, other in permutations(read, 2):
        named = _called_average(average.path) and not _called_average(other.path)
        if named and (same := _as_beside(average, other)) is not None:
            yield from _judged(average, same, steps_of([average, other]), other.path)


def _called_average(path: str) -> bool:
    return re.search(r"(?i)(?:^|[^a-z])(?:ema|swa|average[ds]?|avg|polyak|shadow)(?:[^a-z]|$)",
                     re.split(r"[/\\]", path)[-1]) is not None


def _as_beside(average: Checkpoint, other: Checkpoint) -> Beside | None:
    own, theirs = average.weights.tensors, other.weights.tensors
    common = [n for n, t in own.items() if n in theirs and theirs[n].shape == t.shape and t.floating]
    if len(common) < max(_FEWEST, 0.8 * len(own)):
        return None
    return Beside("", other.path, {n: own[n] for n in common}, {n: theirs[n] for n in common}, False)


def _judged(one: Checkpoint, beside: Beside, steps: Sequence[int], of: str) -> Iterator[Finding]:
    found = _ratios(beside)
    moved = [r for r in found if r.telling and not r.still]
    surest = [r for r in moved if r.rest <= _REST and r.factor > 0]
    if len(surest) < max(_FEWEST, _SHARE * len(moved)) or {r.matrix for r in surest} != {True, False}:
        return
    logs = np.log([r.factor for r in surest])
    middle = float(np.exp(np.median(logs)))
    spread = float(np.ptp(np.quantile(logs, (0.1, 0.9))))
    above = [r for r in moved if r.factor > (1 + _ABOVE) * middle and r.rest <= 2 * _REST]
    if not _SMALLEST <= middle <= 1 - _FAR or spread > 2 * _NEAR or len(above) > 0.05 * len(moved):
        return
    known = _known(middle, _declared(one), steps)
    told = known or known_factor(middle, min(spread / 2, 0.01), steps)
    yield _finding(one, beside, moved, surest, middle, spread, told, of, bool(known))


def _ratios(beside: Beside) -> list[Ratio]:
    """Of each weight the factor of its average."""
    wanted: list[Tensor] = [*beside.average.values(), *beside.weights.values()]
    if sum(t.nbytes for t in wanted) > _MOST_BYTES:
        return []
    stats, _ = measure_all(wanted)
    kept = {*NORM_SUFFIXES, *NORM_SUFFIXES.values()}
    pairs = [(stats[id(beside.weights[n])], stats[id(t)]) for n, t in beside.average.items()
             if id(t) in stats and id(beside.weights[n]) in stats and re.split(r"[./]", n)[-1] not in kept]
    return list(ratios(pairs))


def _declared(one: Checkpoint) -> list[float]:
    """Decays that the file tells."""
    return [float(v) for k, v in one.values.items() if isinstance(v, float) and 0.5 < v < 1
            and re.search(r"(?i)decay|beta|momentum|ema|rate", k)]


def _known(factor: float, decays: Sequence[float], steps: Sequence[int]) -> str:
    """1 - d^n of a decay and a number of steps that the file tells."""
    return next((f"1 - {d}^{n}, an average that began at zero and was not corrected" for d in decays for n in steps
                 if math.isclose(factor, 1 - d**n, rel_tol=_NEAR)), "")


def _finding(one: Checkpoint, beside: Beside, moved: Sequence[Ratio], surest: Sequence[Ratio], factor: float,
             spread: float, told: str, of: str, declared: bool) -> Finding:
    name = min(surest, key=lambda r: r.rest).name
    place = f"{beside.key}.{name}".lstrip(".")
    largest = max(r.factor for r in moved if r.rest <= 2 * _REST)
    what = f" ({told})" if told else ""
    return RULE.finding(
        f"the average {beside.key or one.path} of {one.path} is {factor:.3g} times {of}{what}: so much of all "
        f"{len(surest)} tensors that have hardly turned since (spread {spread:.2g}; {name} and others), and none of "
        f"the {len(moved)} that differ comes nearer than {largest:.3g}",
        Location(file=one.path, module=place), one.path, bearing=Bearing.CAUSE if told else Bearing.SIGN,
        severity=None if told else Severity.MEDIUM,
        measured={"kind": "average", "name": place, "factor": round(factor, 4), "spread": round(spread, 4),
                  "tensors": len(surest), "of": len(moved), "known": told, "declared": declared})


