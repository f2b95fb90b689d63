"""Whole numbers that wrapped around: values beyond the range of int8 that came back at its other end.

Quantised weights thin out towards the ends of their range, or heap up at exactly the last number where they were
clamped. Without a clamp before the cast 130 becomes -126: the counts fall towards the ends and rise again just before
them, most at the end itself, and on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.significance import share_tail
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.rules import Rule, Threshold

_LEVEL = 1e-6
_VALUES = 1024
_MOST = 2**18
"""Values of a tensor that are counted, its first rows: a second pass over the file would double the time."""
_WIDTHS = (8, 16, 32)
_OTHERS = 4
_OUTER, _AMONG = 2.0, 1.2
_HEAP = 4.0
_NEAR_ENDS = 40
_UNEVEN = 0.3

RULE = Rule(
    id="W130",
    name="wrapped-integers",
    title="Quantised weights wrapped around",
    severity=Severity.HIGH,
    sees="how often each of the 256 values of int8 occurs, at both ends against just inside of them",
    matters="The largest weights of the layer have the opposite sign.",
    alike=("clamped values: they heap up at the last number alone", "tables that use all numbers alike",
           "most tensors of the file do so: then it is how they are made"),
    confirm=("multiply by the scale and compare with the tensor before quantisation",
             "look for a cast without a clamp, and for a scale of another layer"),
    thresholds={
        "level": Threshold(_LEVEL, "probability", "that so many lie within 8, 16 or 32 of an end by chance"),
        "outer": Threshold(_OUTER, "times", "as many in the outer numbers as in as many inside of them"),
        "among": Threshold(_AMONG, "times", "where there are other tensors, three quarters of which thin out"),
        "heap": Threshold(_HEAP, "times", "as often as the numbers before them occur the last ones of clamped tensors"),
        "uneven": Threshold(_UNEVEN, "summed difference of shares", "of low halves of bytes: packed codes"),
        "values": Threshold(_VALUES, "values", "fewer show no tail"),
    },
)


def check(seen: Seen) -> Iterator[Finding]:
    """Every int8 matrix; weights that are stored as uint8 around 128 alike."""
    matrices = [s for n, t in seen.part.tensors.items()
                if t.dtype in ("int8", "uint8") and t.matrix and (s := seen.stats.get(n)) is not None
                and s.size >= _VALUES and not _is_packed(s)]
    rises = {s.name: _rise(s) for s in matrices}
    found = [(s, r) for s in matrices if (r := rises[s.name]) is not None and (
        r.ratio >= _OUTER or (r.ratio >= _AMONG and len(matrices) > _OTHERS))]
    many = len(found) > max(1, len(matrices) // _OTHERS)
    for stats, rise in found if not many else []:
        yield RULE.finding(
            f"{stats.name} in {seen.path} has {rise.outer} values within {rise.width} of the ends of "
            f"{stats.tensor.dtype} and {rise.inner} in the {rise.width} inside of them: they wrapped around when they "
            f"were cast" + (f"; the other {len(matrices) - len(found)} tensors thin out" if len(matrices) > 1 else ""),
            seen.where(stats.name), seen.path, bearing=Bearing.CAUSE,
            severity=None if rise.ratio >= _OUTER else Severity.MEDIUM,
            measured={"kind": "wrapped", "name": stats.name, "outer": rise.outer, "inner": rise.inner,
                      "tensors": len(matrices)})


    if not found:
        yield from _unclamped(seen, matrices)


def _is_packed(stats: Stats) -> bool:
    """Whether each byte holds two codes of four bits: its halves are distributed alike, and the low one unevenly.

    The low half of a code of eight bits is nearly even.
    """
    counts = _counts(stats).astype(np.float64)
    if stats.tensor.dtype == "int8":
        counts = np.roll(counts, 128)  # -128 and up, as the bytes they are stored as
    square = counts.reshape(16, 16) / max(1.0, counts.sum())
    high, low = square.sum(axis=1), square.sum(axis=0)
    return bool(np.abs(low - 1 / 16).sum() >= _UNEVEN and np.abs(low - high).sum() <= np.abs(low - 1 / 16).sum() / 2)


def _unclamped(seen: Seen, matrices: Sequence[Stats]) -> Iterator[Finding]:
    """The one tensor whose values do not heap up at the last number, while all others' do and as many lie near it."""
    if len(matrices) <= _OTHERS:
        return
    held = [_at_the_ends(s) for s in matrices]
    none = [i for i, (heap, _) in enumerate(held) if heap <= _HEAP / 2]
    if len(none) != 1 or any(heap < _HEAP for i, (heap, _) in enumerate(held) if i != none[0]):
        return
    stats, near = matrices[none[0]], held[none[0]][1]
    usual = float(np.median([n for i, (_, n) in enumerate(held) if i != none[0]]))
    if near >= usual / 2 and near * stats.size >= _NEAR_ENDS:
        yield RULE.finding(
            f"{stats.name} in {seen.path} does not heap up at the last numbers of {stats.tensor.dtype} as the other "
            f"{len(matrices) - 1} tensors do where they were clamped, and {near:.2%} of its values lie just before "
            f"them (usual: {usual:.2%}): what was beyond has wrapped around",
            seen.where(stats.name), seen.path, bearing=Bearing.SIGN, severity=Severity.MEDIUM,
            measured={"kind": "unclamped", "name": stats.name, "near": near, "tensors": len(matrices)})


def _at_the_ends(stats: Stats) -> tuple[float, float]:
    """How many times as often the last numbers occur as those before them, and the share of the latter."""
    counts = _counts(stats)
    last = max(int(counts[0]), int(counts[1])), int(counts[-1])  # clamped at -127 or at -128
    near = int(counts[2:10].sum()), int(counts[-9:-1].sum())
    if (min(last) == 0 and max(last) > 0) or sum(near) == 0:
        return 0.0, 0.0
    return 8.0 * sum(last) / sum(near), sum(near) / max(1, int(counts.sum()))


@dataclass(frozen=True)
class _Rise:
    """Values near both ends, and as far inside."""

    width: int
    outer: int
    inner: int

    @property
    def ratio(self) -> float:
        return self.outer / max(1, self.inner)


def _rise(stats: Stats) -> _Rise | None:
    """The width at which counts rise the most towards both ends; None where they do not, beyond chance."""
    counts = _counts(stats)
    if counts[64:192].sum() < 0.4 * counts.sum():  # no distribution around the middle: codes, packed halves
        return None
    found = []
    for width in _WIDTHS:
        sides = []
        for side in (counts[1:], counts[::-1][1:]):  # the last number alone is a clamp's
            outer, inner = int(side[: width - 1].sum()), int(side[width - 1: 2 * width - 2].sum())
            sides.append((outer, inner))
        rise = _Rise(width, sum(o for o, _ in sides), sum(i for _, i in sides))
        if all(share_tail(o, o + i, 0.5) < _LEVEL ** 0.25 for o, i in sides) and share_tail(
                rise.outer, rise.outer + rise.inner, 0.5) < _LEVEL:
            found.append(rise)
    return max(found, key=lambda r: r.ratio, default=None)


def _counts(stats: Stats) -> NDArray[np.int64]:
    """How often each number occurs, from the lowest on; of a large tensor in its first rows."""
    rows = max(1, _MOST // max(1, stats.size // stats.tensor.rows))
    low = 0 if stats.tensor.dtype == "uint8" else -128
    counts = np.zeros(256, np.int64)
    for part in stats.tensor.raw(rows if rows < stats.tensor.rows else None):
        counts += np.bincount(part.astype(np.int64) - low, minlength=256)
    return counts
