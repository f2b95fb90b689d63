"""Numbers beyond eight bits that came back at the other end: values of a quantised matrix, or its zero points.

Beside the real numbers that the codes were made from, each code is compared with the one that its value should have.
Values beyond the range have to stand at its last code; where they are 256 away from their place they wrapped, and have
the opposite sign. Zero points are asked without a second file: codes less their zero point lie around nothing, and in a
line whose zero point wrapped they all lie 256 off.

A matrix most of whose codes stand at both ends of the range, where those of all others in the file hardly do, was
divided by scales that are too small: what lies beyond them is cut off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.coded import (
    FITS,
    MOST_BYTES,
    RANGE,
    Coded,
    Values,
    at_ends,
    coded_from,
    codes_of,
    scaled_codes,
    zero_points,
)
from traindx_tools.on_weights.tensor import Tensor
from traindx_tools.rules import Rule, Threshold

_FEWEST, _SHARE = 4, 0.9
_NEAR, _USUAL = 80.0, 0.75
_SHOWN = 4
_SIDE, _MOST, _USUAL_ENDS, _OTHERS = 0.1, 0.3, 0.1, 3

RULE = Rule(
    id="W171",
    name="codes-beyond-range",
    title="Values beyond the range of eight bits wrapped around, or most were clipped",
    severity=Severity.HIGH,
    sees="Each code beside the value that it was made from, in the same file or in another one of the run; zero points "
         "beside the middle of their codes.",
    matters="The largest weights of the layer have the opposite sign, or all weights of a channel the same one.",
    alike=("some clipped values: they stand at the last code", "matrices of two or three codes on purpose",
           "a convention of zero points that holds in all lines",
           "channels whose weights all have one sign"),
    confirm=("clip the named values in a copy and evaluate",
             "look for a cast to int8 without a clamp, and for the type that zero points are stored in"),
    thresholds={
        "fewest": Threshold(_FEWEST, "values", "that wrapped: fewer are of no weight"),
        "share": Threshold(_SHARE, "of the values beyond the range", "that wrapped: the others were clipped"),
        "fits": Threshold(FITS, "codes", "that the typical inner value may be off by: rounding leaves a quarter"),
        "ends": Threshold(_MOST, "of the codes of a matrix", "that stand at the ends, a tenth at each"),
        "others": Threshold(_USUAL_ENDS, "of the codes", "of each other matrix that do; three others"),
        "near": Threshold(_NEAR, "codes", "that the middle of a line is from its zero point: most are within 40"),
        "usual": Threshold(_USUAL, "of all lines of the file", "that are so near: else it is another convention"),
    },
)


def check_files(read: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Files of codes beside themselves and all others. Raises UnreadableInput."""
    for one in read:
        if not codes_of(one):
            continue
        found: dict[str, Coded] = {}
        for other in (one, *(r for r in read if r is not one)):
            for made in coded_from(one, other):
                found.setdefault(made.codes.name, made)
        wrapped = list(_wrapped(one, list(found.values())))
        yield from wrapped
        yield from _zero_points(one, found)
        yield from () if wrapped else _saturated(one)  # what wrapped is not at the ends, and no measure


def _wrapped(one: Checkpoint, made: Sequence[Coded]) -> Iterator[Finding]:
    odd = [c for c in made if c.wrapped >= _FEWEST and c.wrapped >= _SHARE * c.beyond]
    if not odd:
        return
    sound = [c for c in made if c not in odd]
    clipped = sum(c.clipped for c in sound)
    others = (f"; the other {len(sound)} matrices have "
              + (f"{clipped:,} values beyond the range and all are clipped" if clipped else "no value beyond the range")
              if sound else "")
    for c in sorted(odd, key=lambda c: -c.wrapped):
        should, stands, _ = c.example
        part = "" if c.looked == c.codes.size else f"of the first {c.looked:,} "
        yield RULE.finding(
            f"{c.wrapped:,} values {part}of {c.codes.name} in {one.path} wrapped around: beside {c.source.name} of "
            f"{c.source.file} their codes lie beyond {c.codes.dtype} and were not clipped (one of {should:.0f} is "
            f"stored as {stands}), so that the largest weights come back from the other end{others}",
            Location(file=one.path, module=c.codes.name), one.path, bearing=Bearing.CAUSE,
            measured={"kind": "wrapped", "name": c.codes.name, "wrapped": c.wrapped, "clipped": c.clipped,
                      "of": c.codes.size, "tensors": len(made), "odd": len(odd)})


def _saturated(one: Checkpoint) -> Iterator[Finding]:
    """Matrices most of whose codes stand at both ends of the range, where those of all others hardly do."""
    shares = {t.name: ends for t in scaled_codes(one) if (ends := at_ends(t)) is not None}
    odd = {n: s for n, s in shares.items() if min(s) >= _SIDE and sum(s) >= _MOST}
    rest = [sum(s) for n, s in shares.items() if n not in odd]
    if not odd or len(rest) < _OTHERS or len(odd) > len(rest) or max(rest) > _USUAL_ENDS:
        return
    for name, ends in odd.items():
        yield RULE.finding(
            f"{sum(ends):.0%} of the codes of {name} in {one.path} stand at the ends of the range, on both sides, and "
            f"at most {max(rest):.0%} in each of the other {len(rest)} quantised matrices: its values were clipped, as "
            "the scales that it was divided by are too small for it, and what is restored is cut off",
            Location(file=one.path, module=name), one.path, bearing=Bearing.CAUSE,
            measured={"kind": "clipped", "name": name, "share": sum(ends), "others": max(rest), "tensors": len(shares)})


def _zero_points(one: Checkpoint, made: Mapping[str, Coded]) -> Iterator[Finding]:
    """Lines whose codes lie a whole range away from their zero point, where those of nearly all others lie around it.
    """
    tensors, zeros = {t.name: t for t in codes_of(one)}, zero_points(one)
    off = {n: _off(tensors[n], z) for n, z in zeros.items()}
    whole = np.concatenate([np.zeros(0), *off.values()])
    near = np.abs(whole) <= _NEAR
    if not len(whole) or near.mean() < _USUAL:
        return
    for name, lines in off.items():
        stored = np.asarray(zeros[name].load().reshape(-1), np.float64)
        turns = np.rint(lines / RANGE)
        apart = (turns != 0) & (np.abs(lines - RANGE * turns) <= _NEAR)
        odd = np.flatnonzero(apart & ~_as_made(made.get(name), stored))
        if len(odd):
            yield _of_lines(one, zeros[name], name, odd, stored, int(near.sum()))


def _of_lines(one: Checkpoint, zeros: Tensor, name: str, odd: NDArray[np.intp], stored: Values, others: int) -> Finding:
    listed = ", ".join(f"{int(i)} ({int(stored[i])})" for i in odd[:_SHOWN])
    more = f" and {len(odd) - _SHOWN} more" if len(odd) > _SHOWN else ""
    return RULE.finding(
        f"{len(odd)} of {len(stored)} zero points of {name} ({zeros.name} in {one.path}) wrapped around: those of "
        f"lines {listed}{more} lie {RANGE} from where their codes do, so that every weight there is off by {RANGE} "
        f"steps; in {others:,} other lines of the file the codes lie around their zero point",
        Location(file=one.path, module=zeros.name), one.path, bearing=Bearing.CAUSE,
        measured={"kind": "zero-points", "name": zeros.name, "lines": len(odd), "of": len(stored), "others": others})


def _as_made(made: Coded | None, stored: Values) -> NDArray[np.bool_]:
    """Where the real numbers themselves give the stored zero point: channels of one sign."""
    if made is None or len(made.zeros) != len(stored):
        return np.zeros(len(stored), bool)
    return np.asarray(np.abs(made.zeros - stored) <= RANGE / 4)


def _off(codes: Tensor, zeros: Tensor) -> Values:
    """Of each line the middle of its codes less its zero point."""
    axis = 0 if codes.shape[0] == zeros.size else len(codes.shape) - 1
    lines = np.moveaxis(np.asarray(codes.load(MOST_BYTES)), axis, 0).reshape(zeros.size, -1)
    return np.asarray(np.median(lines, axis=1) - zeros.load().reshape(-1), np.float64)
