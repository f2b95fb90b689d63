"""Running statistics or scales of a quantised tensor are those of another layer, bit by bit.

Both follow from what one layer computes or holds. That two layers with other weights have the same vector of many
different numbers does not happen by chance: the names of one were filled with the values of the other. Which of the two
is the copy is told by scales: a line with one large value has a large scale and small codes, so that the two go against
each other where they belong together.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.norm_movement import values_of
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.tensor import Tensor
from traindx_tools.rules import Rule, Threshold

_BITS = 40.0
_GAP, _TIMES = 0.3, 1.5
_MOST_BYTES, _MOST_SCALES = 2**24, 2**22
_CODES = frozenset({"int8", "uint8", "int32", "uint32", "float8_e4m3fn", "float8_e5m2"})
_CALLED, _OF_INPUTS = ("scale", "scb", "absmax"), ("input", "act", "output", "zero")
_SHARE = 0.25

RULE = Rule(
    id="W151",
    name="copied-vectors",
    title="Statistics or scales of a layer are those of another one",
    severity=Severity.HIGH,
    sees="running means and variances, and scales beside codes, of all layers, bit by bit",
    matters="The layer normalises or dequantises with numbers of another one: what follows is of a wrong scale.",
    alike=("one layer under two names: its weights are the same as well", "scales that are all alike",
           "a file in which many layers share theirs on purpose"),
    confirm=("compute the statistics or scales of this layer anew and compare", "compare with an earlier file"),
    thresholds={
        "bits": Threshold(_BITS, "bits", "of information in the vector: what two layers do not share by chance"),
        "share": Threshold(_SHARE, "of the layers", "at most that share a vector: more do it by design"),
    },
)


@dataclass(frozen=True, eq=False)
class _Vector:
    """What a layer keeps. `own`: the bytes of the weights that it belongs to, or of what else the layer holds."""

    layer: str
    name: str
    data: bytes
    own: bytes
    agrees: float = math.nan
    """Correlation of scales with the spread of their codes: below zero where they belong together."""
    shape: tuple[int, ...] = ()
    size: float = math.nan
    """About the root mean square of what the codes restore to."""


def check(seen: Seen) -> Iterator[Finding]:
    """Pairs of layers, of statistics and of scales."""
    yield from _equal(seen, list(_statistics(seen)), "statistics")
    yield from _equal(seen, list(_scales(seen)), "scales")
    yield from _equal(seen, list(_zeros(seen)), "zeros")


def _statistics(seen: Seen) -> Iterator[_Vector]:
    for module, mean, variance in seen.normalisations():
        values = values_of(variance), values_of(mean)
        if values[0] is not None and values[1] is not None and _bits(values[0]) >= _BITS:
            yield _Vector(module, variance.name, values[0].tobytes() + values[1].tobytes(), _around(seen, module))


def _around(seen: Seen, module: str) -> bytes:
    """What the layer itself has beside its statistics; a layer that is there twice has all of it twice."""
    names = [f"{module}.{last}" for last in ("weight", "scale", "gamma", "bias", "beta")]
    return b"".join(t.load().tobytes() for n in names if (t := seen.part.tensors.get(n)) is not None
                    and t.nbytes <= _MOST_BYTES)


def _scales(seen: Seen) -> Iterator[_Vector]:
    for codes, scale in _beside(seen.part.tensors):
        values = scale.load().astype(np.float64).reshape(-1)
        if np.isfinite(values).all() and _bits(values) >= _BITS:
            stored = codes.load()
            size = float(np.sqrt((stored.astype(np.float64) ** 2).mean()) * np.abs(values).mean())
            yield _Vector(codes.name, scale.name, values.tobytes(), stored.tobytes(), _agreement(stored, values),
                          codes.shape, size)


def _zeros(seen: Seen) -> Iterator[_Vector]:
    """Zero points, of types of codes or of real numbers, beside the codes of their module."""
    for codes, _ in _beside(seen.part.tensors):
        module = codes.name.rpartition(".")[0]
        for name, tensor in seen.part.tensors.items():
            last = name.removeprefix(module).lower()
            if name.rpartition(".")[0] == module and "zero" in last and tensor.nbytes <= _MOST_SCALES:
                values = tensor.load().astype(np.float64).reshape(-1)
                if np.isfinite(values).all() and _bits(values) >= _BITS:
                    stored = codes.load()
                    yield _Vector(codes.name, name, values.tobytes(), stored.tobytes(), _middles(stored, values),
                                  codes.shape)


def _beside(tensors: Mapping[str, Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    """Each tensor of codes with the one of scales in its module that is called most like it."""
    by_module: dict[str, list[Tensor]] = {}
    for name, tensor in tensors.items():
        by_module.setdefault(name.rpartition(".")[0], []).append(tensor)
    for name, codes in tensors.items():
        if codes.dtype not in _CODES or len(codes.shape) < 2 or codes.nbytes > _MOST_BYTES:
            continue
        stem = name.rpartition(".")[2].removeprefix("q").removesuffix("_q")
        near = [(stem not in last, len(last), s) for s in (*by_module[name.rpartition(".")[0]],
                                                          *by_module.get(name, ()))
                if (last := s.name.removeprefix(name.rpartition(".")[0]).lower()) and s.floating
                and any(c in last for c in _CALLED) and not any(o in last for o in _OF_INPUTS)
                and s.nbytes <= _MOST_SCALES]
        if near:
            yield codes, min(near, key=lambda n: n[:2])[2]


def _agreement(codes: NDArray[np.floating] | NDArray[np.integer], scales: NDArray[np.float64]) -> float:
    axis = 0 if codes.shape[0] == len(scales) else codes.ndim - 1
    if codes.shape[axis] != len(scales):
        return math.nan
    lines = np.moveaxis(codes.astype(np.float64), axis, 0).reshape(len(scales), -1)
    spread = np.sqrt((lines**2).mean(axis=1))
    if not (spread > 0).all() or not (scales > 0).all() or not np.ptp(spread) or not np.ptp(scales):
        return math.nan
    return float(np.corrcoef(np.log(scales), np.log(spread))[0, 1])


def _middles(codes: NDArray[np.floating] | NDArray[np.integer], zeros: NDArray[np.float64]) -> float:
    """Minus the correlation of zero points with the middles of their lines of codes, as of scales: low where they fit.
    """
    axis = next((a for a in (0, codes.ndim - 1) if codes.shape[a] == len(zeros)), None)
    if axis is None:
        return math.nan
    middles = np.moveaxis(codes.astype(np.float64), axis, 0).reshape(len(zeros), -1).mean(axis=1)
    return -float(np.corrcoef(zeros, middles)[0, 1]) if np.ptp(zeros) and np.ptp(middles) else math.nan


def _bits(values: NDArray[np.float64]) -> float:
    """How much a vector tells: its length times the entropy of its values."""
    counts = np.unique(values, return_counts=True)[1] / max(1, values.size)
    return float(-(counts * np.log2(counts)).sum() * values.size)


def _equal(seen: Seen, vectors: Sequence[_Vector], kind: str) -> Iterator[Finding]:
    shared = Counter(v.data for v in vectors)
    groups = [g for data, n in shared.items() if n > 1 and len(g := _distinct(vectors, data)) > 1]
    if sum(map(len, groups)) > max(2, _SHARE * len(vectors)):
        return
    for group in groups:
        yield _finding(seen, group, kind, _beyond(group, [v for v in vectors if v not in group]))


def _distinct(vectors: Sequence[_Vector], data: bytes) -> list[_Vector]:
    """The layers of one vector, without those that are the same layer."""
    found: dict[bytes, _Vector] = {}
    for v in vectors:
        if v.data == data:
            found.setdefault(v.own or v.layer.encode(), v)
    return list(found.values())


def _beyond(group: Sequence[_Vector], others: Sequence[_Vector]) -> _Vector | None:
    """The one layer whose values are then far from those of all other layers of its shape."""
    far = []
    for v in group:
        alike = [o.size for o in others if o.shape == v.shape and o.size > 0]
        if v.size > 0 and alike and min(abs(math.log(v.size / o)) for o in alike) >= math.log(_TIMES):
            far.append(v)
    return far[0] if len(far) == 1 else None


def _said(kind: str, vector: _Vector) -> float:
    return -vector.agrees if kind == "zeros" else vector.agrees


def _finding(seen: Seen, group: Sequence[_Vector], kind: str, beyond: _Vector | None) -> Finding:
    ordered = sorted(group, key=lambda v: math.inf if math.isnan(v.agrees) else v.agrees, reverse=True)
    copy, owner = ordered[0], ordered[-1]
    told = not math.isnan(copy.agrees) and copy.agrees - owner.agrees >= _GAP
    one, other = (copy, owner) if told else (group[1], group[0])
    why = (f": they go with the codes of {owner.layer} (correlation {_said(kind, owner):.2f}) and not with those of "
           f"{copy.layer} ({_said(kind, copy):.2f}), which is the copy") if told else ": one of the two is a copy"
    if beyond is not None and not told:
        one, other = beyond, next(v for v in group if v is not beyond)
        why = f": with them {one.layer} is far from the other layers of its shape, so it has the copy"
    what = {"scales": "the scales", "zeros": "the zero points"}.get(kind, "the running mean and variance")
    return RULE.finding(
        f"{what} {one.name} in {seen.path} are those of {other.name} to the bit, and the layers are not the same{why}",
        seen.where(one.name), seen.path, bearing=Bearing.CAUSE,
        measured={"kind": kind, "name": one.name, "other": other.name, "sure": told or beyond is not None})
