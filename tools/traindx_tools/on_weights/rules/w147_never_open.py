"""Units whose bias is so far below zero that no input opens their rectifier.

What comes in has a scale: that of standardised inputs in the first layer, and behind it what the layer before can give.
A unit whose bias lies further below zero than its weights times that scale reach is zero for every input, gets no
gradient and stays so. Told is a large part of one hidden layer, where the other hidden layers, or the other units of
it, are near zero. Layers behind which a normalisation stands, gates, heads that are read by nobody (where biases are
logarithms of class frequencies) and layers with as many biases far above zero, as weights that take raw inputs have,
are left alone; so are units that the optimizer's moments show to have gradients.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.dense_chain import Layer, layers_of
from traindx_tools.on_weights.parameter_names import names_of
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.unit_reach import COMMON, DEVIATIONS, Reach, hidden
from traindx_tools.rules import Rule, Threshold

_SHARE, _FEWEST, _UNITS = 0.2, 4, 8
_ELSEWHERE, _ABOVE, _APART, _STILL = 0.02, 0.1, 4.0, 1e-4
_LOW, _FAR = 0.1, 10.0
"""Quantile of the biases' magnitudes, and how many times it a bias is far: 1.3 deviations of normal ones, a tenth."""

RULE = Rule(
    id="W147",
    name="never-open",
    title="Units of a hidden layer that no input opens",
    severity=Severity.HIGH,
    sees="biases of hidden layers against the reach of their weights, for inputs as the layer before can give them",
    matters="These units are zero for every input and get no gradient: the layer is as narrow as what is left of it.",
    alike=("biases of gates (LSTM, GRU) and of output layers (class frequencies)",
           "a first layer that takes raw inputs: its biases are far from zero on both sides",
           "layers behind which a normalisation stands"),
    confirm=("count the units that are above zero for any sample of a batch",
             "print the gradient of the bias after one step: it is exactly zero for these units"),
    thresholds={
        "share": Threshold(_SHARE, "of the units of a layer", "single dead units are in many trained networks"),
        "deviations": Threshold(DEVIATIONS, "deviations of the weighted inputs", "one in a million of a normal sum"),
        "common": Threshold(COMMON, "deviations of what all inputs do alike", "bright and dark images"),
        "elsewhere": Threshold(_ELSEWHERE, "of the units of the other hidden layers", "that may be closed too"),
        "apart": Threshold(_APART, "times the biases of the other units", "the least distance of a closed unit"),
    },
)
_GATE = re.compile(r"(?i)(?:gate|log_?(?:var|std|sigma|scale)|sigma|(?:^|[._/])dt_"
                   r"|(?:^|[._/])[ih][ifgorznc](?:$|[._/]))")
"""Gates, recurrences of flax and logarithms of scales: below zero on purpose, and no rectifier behind them."""


def check(seen: Seen) -> Iterator[Finding]:
    """Each hidden layer of the chain."""
    layers = layers_of(seen)
    if not _suspicious(layers):
        return
    reaches = [r for r in hidden(layers) if r.layer.outputs >= _UNITS]
    for reach in reaches:
        closed = reach.closed
        count = int(closed.sum())
        if count < max(_FEWEST, _SHARE * len(closed)) or _GATE.search(reach.layer.weight.name):
            continue
        others = [r for r in reaches if r is not reach]
        if reach.always.sum() <= _ABOVE * count and _stand_out(reach, others) and not _trained(seen, reach):
            yield _finding(seen, reach, others)


def _suspicious(layers: Sequence[Layer]) -> bool:
    """Whether any layer has many biases far below zero for this file: weights are loaded for that alone."""
    if not layers:
        return False
    usual = float(np.quantile(np.abs(np.concatenate([one.shifts for one in layers])), _LOW))
    return any((one.shifts < -_FAR * usual).mean() >= _SHARE for one in layers)


def _stand_out(reach: Reach, others: Sequence[Reach]) -> bool:
    """Whether the closed units are apart from those of the other hidden layers, or else from the rest of their own."""
    closed, shifts = reach.closed, np.abs(reach.layer.shifts)
    if others:
        beside = np.concatenate([r.closed for r in others])
        usual = np.concatenate([np.abs(r.layer.shifts) for r in others])
        return bool(beside.mean() <= _ELSEWHERE and np.median(shifts[closed]) >= _APART * np.median(usual))
    left = shifts[~closed]
    return len(left) >= max(_FEWEST, _SHARE * len(closed)) and bool(
        np.quantile(shifts[closed], 0.1) >= _APART * np.median(left) and np.median(left / reach.far[~closed]) < 0.3)


def _second(seen: Seen, reach: Reach) -> NDArray[np.float64] | None:
    """The mean of squared gradients of the biases, where the file has one."""
    name = reach.layer.bias.name
    names = {id(o): names_of(o, seen.parameters) for o in seen.checkpoint.optimizers}
    for one in seen.moments:
        own = names[id(one.optimizer)].get(one.key) if one.optimizer is not None else one.key
        if own == name and one.second is not None and one.second.size == reach.layer.outputs:
            return one.second.tensor.load().astype(np.float64).reshape(-1)
    return None


def _trained(seen: Seen, reach: Reach) -> bool:
    """Whether most of the closed units had gradients as the others have."""
    second = _second(seen, reach)
    if second is None or not second.any() or reach.closed.all():
        return second is not None and bool(second.any())
    usual = float(np.median(second[~reach.closed]))
    return bool((second[reach.closed] > _STILL * usual).mean() > 0.5)


def _finding(seen: Seen, reach: Reach, others: Sequence[Reach]) -> Finding:
    closed, layer = reach.closed, reach.layer
    units = np.flatnonzero(closed)
    listed = ", ".join(str(int(i)) for i in units[:5]) + (f" and {len(units) - 5} more" if len(units) > 5 else "")
    ratio = float(np.median(layer.shifts[closed] / (reach.far[closed] / DEVIATIONS)))
    beside = (f"those of the other hidden layers are {np.median(np.concatenate([r.layer.shifts for r in others])):.2g}"
              if others else f"those of the other units are {np.median(layer.shifts[~closed]):.2g}")
    still = "; their moments are zero" if _second(seen, reach) is not None else ""
    scale = "standardised inputs" if reach.first else "what the layer before gives"
    return RULE.finding(
        f"{len(units)} of {len(closed)} units of {layer.weight.name} never open: their biases are about "
        f"{np.median(layer.shifts[closed]):.2g}, {-ratio:.1f} deviations below zero for {scale}, and {beside}{still} "
        f"(units {listed}; {seen.path})",
        seen.where(layer.bias.name), seen.path, bearing=Bearing.CAUSE,
        measured={"kind": "closed", "name": layer.bias.name, "units": len(units), "of": len(closed),
                  "bias": round(float(np.median(layer.shifts[closed])), 4), "deviations": round(-ratio, 2)})
