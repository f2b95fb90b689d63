"""Running statistics are the same in two checkpoints of one run, and the weights that make them have changed much.

A layer that is frozen with its statistics is fine-tuned around: weights move by a few parts in a hundred. Where the
weights moved by a fifth of their norm and more, and scales and shifts of the layers with them, statistics that did not
change in a bit are of another network: their updates were dropped at some step. A count of batches that went on says it
by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.fresh_statistics import fresh
from traindx_tools.on_weights.movement import movement
from traindx_tools.on_weights.norm_movement import batches, values_of
from traindx_tools.on_weights.seen import Seen
from traindx_tools.rules import Rule, Threshold

_FAR, _MUCH, _AFFINE = 0.2, 0.5, 0.02
_OWN = ("weight", "scale", "gamma", "bias", "beta", "offset")
_FEWEST = 2

RULE = Rule(
    id="W152",
    name="statistics-stood-still",
    title="Running statistics stood still while the weights moved",
    severity=Severity.HIGH,
    sees="Running mean and variance of each layer in two checkpoints, counts of batches, how far the weights moved.",
    matters="Evaluation normalises with the numbers of an earlier network: it is far from what training sees.",
    alike=("layers frozen on purpose in a fine-tuning: weights move by little", "two files of one step"),
    confirm=("evaluate once in train mode: the metric is then as in training",
             "look where the new batch statistics are put back into the state that is saved"),
    thresholds={
        "far": Threshold(_FAR, "of their norm", "that the weights moved, together; fine-tunings stay below a tenth"),
        "affine": Threshold(_AFFINE, "of their norm", "that scales or shifts moved, where some layers stood still"),
        "much": Threshold(_MUCH, "of their norm", "from which on it is no fine-tuning"),
    },
)


def check(seen: Seen) -> Iterator[Finding]:
    """One finding for all layers that stood still."""
    if seen.other is None or not (seen.main or not seen.weights):
        return
    layers = [(m, mean, var) for m, mean, var in seen.normalisations() if not fresh(mean, var)]
    still = [m for m, mean, var in layers if _same(seen, mean.name) and _same(seen, var.name)]
    if not still:
        return
    counted = [m for m in still if (n := batches(seen, m)) and (b := batches(seen.other, m)) and n != b]
    if counted:
        yield _finding(seen, counted, len(layers), f"and {counted[0]} counted on from "
                       f"{batches(seen.other, counted[0]):,} to {batches(seen, counted[0]):,} batches", True)
        return
    changes = _changes(seen)
    trained = [m for m in still if any(changes.get(f"{m}.{n}", 0.0) >= _AFFINE for n in _OWN)]
    if 0 < len(trained) == len(still) < len(layers):
        yield _finding(seen, still, len(layers), f"and those of the other "
                       f"{len(layers) - len(still)} are not, while their own scales and shifts moved", False)
        return
    moved = _moved(seen, changes)
    if len(still) == len(layers) >= _FEWEST and moved >= _FAR:
        yield _finding(seen, still, len(layers), f"and the weights moved by {moved:.2g} of their norm", moved >= _MUCH)


def _same(seen: Seen, name: str) -> bool:
    assert seen.other is not None
    one, other = seen.stats.get(name), seen.other.stats.get(name)
    if one is None or other is None or one.tensor.shape != other.tensor.shape:
        return False
    values, earlier = values_of(one), values_of(other)
    return values is not None and earlier is not None and np.array_equal(values, earlier)


def _changes(seen: Seen) -> Mapping[str, float]:
    """The relative change of each weight that is no running statistic."""
    assert seen.other is not None
    now, then = seen.checkpoint.weights.tensors, seen.other.checkpoint.weights.tensors
    kept = {n for m, mean, var in seen.normalisations() for n in (mean.name, var.name)}
    return {n: c for n, c in movement(now, then).items() if n not in kept and np.isfinite(c) and now[n].size > 1}


def _moved(seen: Seen, changes: Mapping[str, float]) -> float:
    """The median relative change of the matrices; 0 where something did not move: what is frozen keeps its statistics.
    """
    matrices = [c for n, c in changes.items() if seen.checkpoint.weights.tensors[n].matrix]
    return float(np.median(matrices)) if matrices and min(changes.values()) > 0 else 0.0


def _finding(seen: Seen, still: list[str], of: int, why: str, sure: bool) -> Finding:
    assert seen.other is not None
    names = ", ".join(still[:4]) + (f" and {len(still) - 4} more" if len(still) > 4 else "")
    first = next(v.name for m, _, v in seen.normalisations() if m == still[0])
    return RULE.finding(
        f"the running mean and variance of {len(still)} of {of} normalisations ({names}) are the same to the bit in "
        f"{seen.path} and {seen.other.path}, {why}: they are no longer updated, or an old state is saved",
        seen.where(first), seen.path, bearing=Bearing.CAUSE if sure else Bearing.SIGN,
        severity=None if sure else Severity.MEDIUM,
        measured={"kind": "still", "name": still[0], "layers": len(still), "of": of})
