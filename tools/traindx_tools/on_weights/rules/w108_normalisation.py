"""Running statistics of a normalisation are impossible, were never updated, or are not those of this layer.

A variance is never negative. Mean 0 and variance 1 in every channel is where they start: beside layers whose statistics
moved, or in a model that was trained (its shifts moved, steps are counted, its matrices are no noise), this one was
never updated or never loaded. The variance of a channel follows the weights that make it: where it does in the other
layers and does not in one, or is off by orders of magnitude, its statistics belong to other weights.
Where all layers are off, siblings tell nothing: then what a normalised input makes is compared, and a second file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.batch_counts import FEWER, few_batches
from traindx_tools.on_weights.fresh_statistics import Layer, fresh, untouched
from traindx_tools.on_weights.input_scale import first_layer, standardised_layer
from traindx_tools.on_weights.norm_makers import follows, scale_and_shift, weights_before
from traindx_tools.on_weights.norm_movement import Moved, moved, values_of
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W108",
    name="running-statistics",
    title="Running statistics of a normalisation are not of this model",
    severity=Severity.HIGH,
    sees="Running mean and variance of each layer, their count of batches, and the weights before them.",
    matters="In evaluation the layer divides by what it never saw: training looks well and evaluation does not.",
    alike=("a new head, or frozen first layers, that counted fewer batches",
           "layers frozen on purpose with statistics of pretraining", "a model before its first batch",
           "data of another scale or augmentation from some step on"),
    confirm=("evaluate once in train mode: the metric is then as in training",
             "run some batches in train mode without steps and compare the statistics"),
    thresholds={
        "fewer": Threshold(FEWER, "of the batches", "that most other layers counted, at most"),
        "decades": Threshold(2.5, "powers of ten of variance over squared weights, against the other layers",
                             "layers of trained networks differ by at most 1.5"),
        "quiet": Threshold(0.1, "times the squared weights at most, in each of 8 and more outputs of the first layer",
                           "inputs of deviation 1 give that in some direction; 0.4 and more in trained networks"),
        "mean": Threshold(100.0, "standard deviations that a mean is off zero in most channels",
                          "what a convolution gives stays within ten"),
        "far": Threshold(0.7, "logarithm of the variance, or standard deviations of the mean, between two files",
                         "a factor of two"),
        "times": Threshold(4.0, "times the relative change of the weights before the layer",
                           "in training it is at most about one"),
    },
)
_DECADES, _MEAN = 2.5, 100.0
_QUIET, _OUTPUTS = 0.1, 8
_FAR, _TIMES = 0.7, 4.0
_CHANNELS, _CHANCE = 16, 1e-4
_MOST = 2**26
"""Bytes of a weight whose last axis is summed."""


def check(seen: Seen) -> Iterator[Finding]:
    """Each layer by itself, then against the others."""
    layers = seen.normalisations()
    told = set()
    begun = [m for m, mean, var in layers if fresh(mean, var)]
    for module, mean, var in layers:
        for finding in _impossible(seen, module, mean, var) if module not in begun else ():
            told.add(module)
            yield finding
    yield from _untouched(seen, layers, begun)
    for found in few_batches(seen, [one for one in layers if one[0] not in begun and one[0] not in told]):
        module, _, var = found.layer
        if found.as_counted:
            told.add(module)
        why = (f"which leaves variances of at least {0.9**found.count:.2f}, as these are: its statistics were begun "
               "anew and are on their way" if found.as_counted else
               "although its statistics are those of more: the count alone was set back")
        yield _finding(seen, var, module, f"counted {found.count:,} batches where {found.others} other layers, before "
                       f"and behind it, counted {found.usual:,}, {why}", "few-batches",
                       None if found.as_counted else Severity.LOW, count=found.count, usual=found.usual)
    for finding in _input(seen, told | set(begun)):
        told.add(str(finding.measured["name"]))
        yield finding
    left = [(m, v) for m, _, v in layers if m not in told and m not in begun]
    alone = list(_foreign(seen, left))
    yield from alone or _all_foreign(seen, left)
    if seen.main or not seen.weights:
        yield from _other_data(seen, [m for m in moved(seen) if m.module not in told and m.module not in begun])


def _impossible(seen: Seen, module: str, mean: Stats, var: Stats) -> Iterator[Finding]:
    if var.low < 0:
        values = values_of(var)
        bad = np.flatnonzero(values < 0) if values is not None else np.zeros(0, np.intp)
        channel = f" in channel {int(np.argmin(values))}" if values is not None else ""
        more = f" ({len(bad)} of {var.size} channels are negative)" if len(bad) > 1 else ""
        yield _finding(seen, var, module, f"a variance of {var.low:.6g}{channel}{more}, which no data have", "negative")
        return
    values, means = values_of(var), values_of(mean)
    if values is None or means is None or not len(values):
        return
    if not values.any():
        yield _finding(seen, var, module, f"a variance of 0 in all {len(values)} channels", "zero")
        return
    off = float(np.median(np.abs(means) / np.sqrt(values + 1e-12)))
    if off > _MEAN and np.median(np.abs(means)) > 1.0:
        yield _finding(seen, mean, module, f"a mean that is {off:.3g} standard deviations off zero in most "
                                           "channels", "mean")


def _input(seen: Seen, told: set[str]) -> Iterator[Finding]:
    """The first layer, whose input the configuration bounds: no output passes that times all weights before it."""
    yield from _too_quiet(seen, told)
    first = first_layer(seen)
    if first is None or first.module in told:
        return
    variances, means, reach = values_of(first.variance), values_of(first.mean), first.reach()
    if variances is None or means is None or len(reach) != len(variances) or not (reach > 0).any():
        return
    some = reach > 0
    times = variances[some] / reach[some] ** 2
    beyond = int((times > 1).sum())
    if float(np.median(times)) > 1:
        far = float(np.median(np.abs(means[some]) / reach[some]))
        yield _finding(
            seen, first.variance, first.module, "variances that no input can give that is normalised as it "
            f"is stated: {beyond} of {len(variances)} channels are beyond the square of |x| up "
            f"to {first.most:.3g} times the sum of |w| of {first.kernel.name}, in the middle {np.median(times):.3g} "
            f"times, and means {far:.3g} times: they are of raw inputs, or of other weights", "input",
            channels=beyond)


def _too_quiet(seen: Seen, told: set[str]) -> Iterator[Finding]:
    """The first layer, whose inputs are said to have a deviation of 1: of many outputs some have the variance of the
    sum of the squares of their weights, whatever the inputs have to do with each other."""
    first = standardised_layer(seen)
    if first is None or first.module in told:
        return
    variances, squares = values_of(first.variance), first.squares()
    if variances is None or len(squares) != len(variances) or len(squares) < _OUTPUTS or not (squares > 0).all():
        return
    ratios = variances / squares
    if 0 < float(ratios.max()) < _QUIET:
        yield _finding(
            seen, first.variance, first.module, f"variances of at most {ratios.max():.3g} times the sum of the squares "
            f"of the weights of {first.kernel.name} ({len(ratios)} channels, in the middle {np.median(ratios):.3g}), "
            f"as of inputs with a deviation of about {math.sqrt(float(ratios.mean())):.2g}, where the configuration "
            "standardises them to 1: they were gathered on inputs that were prepared otherwise", "input",
            channels=len(ratios))


def _untouched(seen: Seen, layers: Sequence[Layer], begun: list[str]) -> Iterator[Finding]:
    """Layers at their initial statistics though others moved, they counted batches, or the model was trained."""
    for found in untouched(seen, layers, begun):
        module, mean, var = found.layers[0]
        names = ", ".join(m for m, _, _ in found.layers[:4])
        more = f" and {len(found.layers) - 4} more" if len(found.layers) > 4 else ""
        several = f" ({len(found.layers)} of {len(layers)} layers: {names}{more})" if len(found.layers) > 1 else ""
        yield _finding(seen, var, module, f"mean {mean.low:g} and variance {var.low:g} in every channel, as before the "
                       f"first batch{several}, though {found.why}", "never-updated",
                       None if found.sure else Severity.MEDIUM, layers=len(found.layers), of=len(layers))


def _foreign(seen: Seen, layers: list[tuple[str, Stats]]) -> Iterator[Finding]:
    """Layers whose variances do not follow the weights before them where those of the others do."""
    before = weights_before(seen, [v for _, v in layers])
    ratios: dict[str, tuple[float, float]] = {}
    for module, var in layers:
        squares, values = before.get(var.name), values_of(var)
        if squares is None or values is None or (values <= 0).any() or (squares <= 0).any():
            continue
        ratios[module] = (float(np.median(np.log10(values / squares))), follows(squares, values))
    if len(ratios) < 4:
        return
    by_name = dict(layers)
    names = list(ratios)
    swapped = {m: other for pair in _exchanged(by_name, before) for m, other in (pair, pair[::-1])}
    for at, module in enumerate(names):
        ratio, own = ratios[module]
        others = [ratios[n] for n in names if n != module]
        middle = float(np.median([r for r, _ in others]))
        told = [f for _, f in others if np.isfinite(f)]
        if module in swapped:
            yield _finding(seen, by_name[module], module, f"variances that follow the weights before {swapped[module]} "
                           "and not its own, and those of that layer follow these: the statistics of the two changed "
                           "places", "exchanged", other=swapped[module])
        elif abs(ratio - middle) > _DECADES and at > 0:
            yield _finding(seen, by_name[module], module, f"variances that are 10^{ratio - middle:.1f} times what its "
                           f"weights make in the other {len(others)} layers", "scale")
        elif len(told) >= 3 and min(told) > 0.5 and own < 0.35 and _less(own, min(told), by_name[module].size):
            yield _finding(seen, by_name[module], module, f"variances that do not follow its weights (correlation "
                           f"{own:.2f}; in the other {len(told)} layers at least {min(told):.2f})", "order")


def _exchanged(layers: Mapping[str, Stats], before: Mapping[str, NDArray[np.float64]]) -> list[tuple[str, str]]:
    """Pairs of layers of one width whose variances follow each other's weights and not their own.

    Told by the gain of all four correlations together (Fisher's z), over all pairs.
    """
    known = {m: (before[v.name], values) for m, v in layers.items()
             if v.name in before and (values := values_of(v)) is not None and len(values) >= _CHANNELS
             and (values > 0).all() and (before[v.name] > 0).all()}
    pairs = [p for p in combinations(known, 2) if len(known[p[0]][1]) == len(known[p[1]][1])]
    found = []
    for one, other in pairs:
        (weights, values), (weights2, values2) = known[one], known[other]
        own = [follows(weights, values), follows(weights2, values2)]
        crossed = [follows(weights, values2), follows(weights2, values)]
        if not np.isfinite([*own, *crossed]).all() or min(crossed) < 0.5 or max(own) > 0.4:
            continue
        gain = float(np.arctanh(np.minimum(crossed, 0.999)).sum() - np.arctanh(np.clip(own, -0.999, 0.999)).sum())
        error = 2.0 / (len(values) - 3) ** 0.5
        if 0.5 * math.erfc(gain / error / 2**0.5) * len(pairs) < _CHANCE:
            found.append((one, other))
    taken = [m for p in found for m in p]
    return [p for p in found if taken.count(p[0]) == taken.count(p[1]) == 1]


def _all_foreign(seen: Seen, layers: list[tuple[str, Stats]]) -> Iterator[Finding]:
    """All layers but the first are off what a normalised input and their weights make: no sibling can tell it.

    Behind a normalisation the mean square of the input is that of its scale and shift; a rectifier halves it.
    """
    affine = [s for m, _ in layers for s in scale_and_shift(seen, m)]
    scale = sum(s.squares / s.size for s in affine) / max(1, len(layers)) / 2
    before = weights_before(seen, [v for _, v in layers])
    off: dict[str, float] = {}
    for module, var in layers[1:]:
        squares, values = before.get(var.name), values_of(var)
        if squares is not None and values is not None and (values > 0).all() and (squares > 0).all() and scale > 0:
            off[module] = float(np.median(np.log10(values / squares / scale)))
    signs = {x > 0 for x in off.values()}
    if len(off) >= 3 and len(signs) == 1 and all(abs(x) > _DECADES for x in off.values()):
        by_name, first = dict(layers), next(iter(off))
        yield _finding(seen, by_name[first], first, f"variances that are 10^{off[first]:.1f} times what its weights "
                       f"make of a normalised input, and so have all {len(off) - 1} layers behind it (10^"
                       f"{float(np.median(list(off.values()))):.1f} in the middle)", "scale-of-all")


def _other_data(seen: Seen, layers: list[Moved]) -> Iterator[Finding]:
    """Layers whose statistics moved many times as far as the weights before them did."""
    far = [m for m in layers if m.weights > 0 and m.far > max(_FAR, _TIMES * m.weights)]
    if not far or seen.other is None:
        return
    worst = max(far, key=lambda m: m.far)
    by_name = {m: v for m, _, v in seen.normalisations()}
    names = ", ".join(m.module for m in far[:4]) + (f" and {len(far) - 4} more" if len(far) > 4 else "")
    yield RULE.finding(
        f"the running statistics of {len(far)} of the {len(layers)} normalisations ({names}) moved far more between "
        f"{seen.path} and {seen.other.path} than the weights explain: in {by_name[worst.module].name} the variance is "
        f"{np.exp(worst.variance):.3g} times what it was and the mean {worst.mean:.3g} standard deviations off, and "
        f"the weights before it moved by {worst.weights:.2g} of their norm: they are of other data",
        seen.where(by_name[worst.module].name), seen.path, bearing=Bearing.SIGN,
        severity=None if 2 * len(far) >= len(layers) else Severity.MEDIUM,
        measured={"name": worst.module, "kind": "other-data", "layers": len(far), "of": len(layers),
                  "variance": round(float(np.exp(worst.variance)), 4), "mean": round(worst.mean, 4),
                  "weights": round(worst.weights, 4)})


def _less(one: float, other: float, channels: int) -> bool:
    """Whether a correlation is lower than another by four standard errors (Fisher's z)."""
    return bool(np.arctanh(min(other, 0.999)) - np.arctanh(max(one, -0.999)) > 4 / (channels - 3) ** 0.5)


def _finding(seen: Seen, stats: Stats, module: str, what: str, kind: str, severity: Severity | None = None,
             **measured: int | str) -> Finding:
    return RULE.finding(
        f"{module} in {seen.path} has {what}", seen.where(stats.name), seen.path,
        bearing=Bearing.SIGN if severity else Bearing.CAUSE, severity=severity,
        measured={"name": module, "kind": kind, **measured})
