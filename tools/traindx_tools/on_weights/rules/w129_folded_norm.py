"""A convolution was fused with the norm of another layer.

Folding a norm into the layer before it gives each channel the bias `beta - mean * gamma / deviation`, and the mean is
what the channel makes of its inputs' means: behind a rectifier these are positive, so that the biases of a fused layer
fall as the sums of its filters rise. Where all layers keep that but one among them, its bias is of another norm. With
the model before the fusion beside it, each channel's factor is held against the factors of all norms there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.rules import Rule, Threshold

_FEWEST = 4
_HOLDS, _LOST = 0.8, 0.4
_CHANNELS = 16
_MOST_BYTES = 2**26
_EXACT = 0.02
_EPS = 1e-5
"""Of torch; that of keras is larger, and hardly matters beside a variance."""
_NUMBER = re.compile(r"\d+")

RULE = Rule(
    id="W129",
    name="folded-norm",
    title="A convolution was fused with the norm of another layer",
    severity=Severity.HIGH,
    sees="the bias of each convolution against the sums of its filters; against a second file, the factor of each "
         "channel and those of its norms",
    matters="The channels of this layer are scaled and shifted by numbers of another one: what follows is noise.",
    alike=("convolutions without a norm, whose biases are their own: they have other shapes or are no minority",
           "the first layer: its inputs are no rectifier's, and it is left out"),
    confirm=("fuse again, each convolution with the norm behind it in the forward pass",
             "compare the outputs of this layer before and after the fusion on one batch"),
    thresholds={
        "holds": Threshold(_HOLDS, "correlation", "of biases with the negative sums of filters, in all other layers"),
        "lost": Threshold(_LOST, "correlation", "at most, in the layer that is off"),
        "channels": Threshold(_CHANNELS, "channels", "fewer make such a correlation by chance"),
        "exact": Threshold(_EXACT, "relative difference", "of a channel's factor from that of a norm, median"),
    },
)


@dataclass(frozen=True)
class _Layer:
    """A convolution with a bias."""

    weight: Stats
    agreement: float
    """Correlation of its bias with the negative sums of its filters."""


def check(seen: Seen) -> Iterator[Finding]:
    """The file by itself, and against another one that still has the norms."""
    if not seen.main:
        return
    if seen.other is not None and (found := list(_against(seen, seen.other))):
        yield from found
        return
    layers = list(_layers(seen))[1:]  # what enters the first one is no rectifier's
    odd = [one for one in layers if abs(one.agreement) <= _LOST]
    rest = [one for one in layers if one.agreement >= _HOLDS]
    if len(odd) != 1 or len(rest) < _FEWEST or len(rest) < len(layers) - 1:
        return
    one = odd[0]
    if any(r.weight.tensor.shape == one.weight.tensor.shape for r in rest):
        usual = float(np.median([r.agreement for r in rest]))
        yield RULE.finding(
            f"the bias of {one.weight.name} in {seen.path} does not follow the sums of its filters (correlation "
            f"{one.agreement:.2f}), as those of the {len(rest)} other convolutions do ({usual:.2f}), which folded "
            "norms make: this layer was fused with the norm of another one",
            seen.where(one.weight.name), seen.path, bearing=Bearing.SIGN, severity=Severity.MEDIUM,
            measured={"kind": "alone", "name": one.weight.name, "here": round(one.agreement, 3),
                      "usual": round(usual, 3)})


def _layers(seen: Seen) -> Iterator[_Layer]:
    for stats in seen.floats:
        bias = seen.bias_of(stats.name)
        if len(stats.tensor.shape) < 3 or bias is None or bias.nan + bias.inf + stats.nan + stats.inf:
            continue
        if bias.size != stats.tensor.rows or bias.size < _CHANNELS or stats.tensor.nbytes > _MOST_BYTES:
            continue
        sums = stats.tensor.load().astype(np.float64).reshape(bias.size, -1).sum(axis=1)
        values = bias.tensor.load().astype(np.float64).reshape(-1)
        if min(float(sums.std()), float(values.std())) > 1e-9:
            yield _Layer(stats, float(np.corrcoef(values, -sums)[0, 1]))


def _against(seen: Seen, before: Seen) -> Iterator[Finding]:
    """Convolutions whose channels were each multiplied by a number: which norm of the other file has these numbers."""
    norms = {n: f for n, f in _factors(before).items() if len(f) >= _CHANNELS}
    fits: list[tuple[str, str]] = []
    for stats in seen.floats:
        other = before.stats.get(stats.name)
        if len(stats.tensor.shape) < 3 or other is None or other.tensor.shape != stats.tensor.shape:
            continue
        factor = _by_channel(stats, other)
        near = {n: _apart(factor, f) for n, f in norms.items() if len(f) == len(factor)} if factor is not None else {}
        if near and min(near.values()) <= _EXACT:
            fits.append((stats.name, min(near, key=lambda n: near[n])))
    yield from _misplaced(seen, before, fits)


def _misplaced(seen: Seen, before: Seen, fits: Sequence[tuple[str, str]]) -> Iterator[Finding]:
    """Norms that two convolutions took; the one between whose neighbours' norms it lies took its own."""
    order = {n: i for i, n in enumerate(before.part.tensors)}
    ranks = {n: i for i, n in enumerate(sorted({n for _, n in fits}, key=lambda n: order.get(f"{n}.weight", 0)))}
    by_norm: dict[str, list[str]] = {}
    for conv, norm in fits:
        by_norm.setdefault(norm, []).append(conv)
    for norm, convs in by_norm.items():
        for conv in convs if len(convs) > 1 else []:
            if _own(conv, norm, fits, ranks):
                continue
            yield RULE.finding(
                f"{conv} in {seen.path} was fused with {norm}, which {', '.join(c for c in convs if c != conv)} was "
                f"fused with too (each of its channels is that of {before.path} times the factor of {norm})",
                seen.where(conv), seen.path, bearing=Bearing.CAUSE,
                measured={"kind": "against", "name": conv, "norm": norm})


def _own(conv: str, norm: str, fits: Sequence[tuple[str, str]], ranks: Mapping[str, int]) -> bool:
    """Whether the norm is as far in the order of norms as the convolution is in that of convolutions."""
    at = [c for c, _ in fits].index(conv)
    same = [c for c, n in fits if n == norm]
    others = [ranks[n] for c, n in fits[:at] if c not in same] or [-1]
    return max(others) < ranks[norm] and all(_name_shared(conv, norm) >= _name_shared(c, norm) for c in same)


def _name_shared(conv: str, norm: str) -> int:
    """Numbers that the two names have in common, and how much of their beginning."""
    numbers = set(_NUMBER.findall(conv)) & set(_NUMBER.findall(norm))
    alike = next((i for i, (a, b) in enumerate(zip(conv, norm, strict=False)) if a != b), min(len(conv), len(norm)))
    return 100 * len(numbers) + alike


def _factors(seen: Seen) -> Mapping[str, NDArray[np.float64]]:
    """Scale over deviation of each channel, by norm."""
    out = {}
    for module, _, variance in seen.normalisations():
        scale = seen.stats.get(f"{module}.weight") or seen.stats.get(f"{module}.scale") or seen.stats.get(
            f"{module}.gamma")
        if scale is not None and scale.tensor.shape == variance.tensor.shape and variance.low >= 0:
            values = scale.tensor.load().astype(np.float64), variance.tensor.load().astype(np.float64)
            out[module] = values[0].reshape(-1) / np.sqrt(values[1].reshape(-1) + _EPS)
    return out


def _by_channel(stats: Stats, other: Stats) -> NDArray[np.float64] | None:
    """By what each output channel was multiplied; None where it was changed otherwise, or not at all."""
    if max(stats.tensor.nbytes, other.tensor.nbytes) > _MOST_BYTES:
        return None
    now, then = (s.tensor.load().astype(np.float64).reshape(s.tensor.rows, -1) for s in (stats, other))
    size = (then**2).sum(axis=1)
    if not (size > 0).all() or not np.isfinite(now).all():
        return None
    factor = (now * then).sum(axis=1) / size
    left = np.linalg.norm(now - factor[:, None] * then, axis=1) / np.maximum(np.linalg.norm(now, axis=1), 1e-300)
    return factor if float(np.median(left)) <= _EXACT and float(np.abs(factor - 1).max()) > _EXACT else None


def _apart(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    return float(np.median(np.abs(one - other) / np.maximum(np.abs(other), 1e-12)))
