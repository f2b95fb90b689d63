"""The scales of a quantised matrix lie along the other axis than its codes, or the matrix does not restore to what it
was made of.

Loading multiplies codes with one scale a row, say. Where a square matrix was quantised by columns, or its scales were
taken of columns, the shapes fit and the numbers do not. Codes tell the axis that they were made along: each of its
lines reaches the end of the range. Scales tell whether they are of these codes: a line with one large value has a large
scale and small codes, so that the two go against each other in every sound matrix. The matrix before quantisation, in
the second file or in one beside, tells it exactly.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from traindx_tools.errors import TraindxError
from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.code_range import PART, few_codes, one_number
from traindx_tools.on_weights.formats.reading import SUFFIXES, read_checkpoint
from traindx_tools.on_weights.grain import in_steps, on_steps
from traindx_tools.on_weights.quantised import MOST_BYTES, SHORTEST, Quantised, axis_of, quantised
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.tensor import Tensor
from traindx_tools.rules import Rule, Threshold

_OTHERS, _SHARE = 3, 0.75
_AGAINST, _GAP, _ERRORS = -0.3, 0.25, 5.0
_RESTORED, _TIMES, _SAME = 0.03, 5.0, 0.01
_MOST_FILES, _MOST_TOTAL = 8, 2**27
_AXES = ("row", "column")

RULE = Rule(
    id="W134",
    name="scale-axis",
    title="Scales of a quantised matrix are not those of its codes",
    severity=Severity.HIGH,
    sees="Which lines of codes reach the end of the range, codes against scales, and the matrix before quantisation.",
    matters="Each line is multiplied by the scale of another one: the layer computes something else.",
    alike=("scales stored with two axes that say which they are for", "scales that were searched or clipped",
           "a file beside that is of another training",
           "a matrix of fewer bits: its scales are larger"),
    confirm=("multiply codes with scales along both axes and compare with the matrix before quantisation",),
    thresholds={
        "others": Threshold(_OTHERS, "matrices", "that agree among each other, three quarters of all"),
        "against": Threshold(_AGAINST, "correlation", "of scales and spreads of the codes, usual among the others"),
        "errors": Threshold(_ERRORS, "standard errors", "that one is away from it (Fisher's z)"),
        "range": Threshold(PART, "of the largest code of the others", "that codes come to, and it restores too small"),
        "restored": Threshold(_RESTORED, "of the norm", "127 steps leave about 0.01"),
    },
)


def check(seen: Seen) -> Iterator[Finding]:
    """With the matrices before quantisation where they are there, then by the codes alone, each matrix once."""
    yield from _restored(seen)
    made = list(_within(quantised(seen.part.tensors)))
    if not made:
        return
    short = [*_of_few_codes(seen, made), *_of_one_number(seen, made)]
    yield from short
    made = [q for q in made if q.tensor.name not in {str(f.measured["name"]) for f in short}]
    usual = _usual(made)
    told = list(_against(seen, made, usual))
    names = {str(f.measured["name"]) for f in told}
    yield from told
    left = [q for q in made if q.tensor.name not in names]
    told = [] if usual is None else [f for q in left if (f := _of_codes(seen, q, usual, made)) is not None]
    yield from told
    names |= {str(f.measured["name"]) for f in told}
    if usual is not None:
        yield from _of_scales(seen, [q for q in made if q.tensor.name not in names], usual)


def _within(found: Iterator[Quantised]) -> Iterator[Quantised]:
    left = _MOST_TOTAL
    for one in found:
        left -= one.tensor.nbytes
        if left < 0:
            return
        yield one


def _usual(made: Sequence[Quantised]) -> int | None:
    """The axis that the file's scales are along: by matrices that are not square, else by most of the codes."""
    told = [q.said for q in made if q.said is not None and q.said == q.axis]
    known = told if len(told) >= _OTHERS else [q.axis for q in made if q.axis is not None]
    axis, count = Counter(known).most_common(1)[0] if known else (None, 0)
    return axis if count >= max(_OTHERS, _SHARE * len(known)) else None


def _of_codes(seen: Seen, one: Quantised, usual: int, made: Sequence[Quantised]) -> Finding | None:
    """Codes along the other axis than the scales are said to be, or than those of the file are."""
    expected = usual if one.said is None else one.said
    if one.axis is None or one.axis == expected:
        return None
    others = sum(q.axis == usual for q in made)
    return _finding(
        seen, one, f"the codes of {one.tensor.name} reach the end of their range in every {_AXES[one.axis]} and not in "
        f"every {_AXES[1 - one.axis]}, and {one.scale_name} has one scale a {_AXES[expected]}"
        f"{'' if one.said is not None else f', as the other matrices ({others}) have'}: it was quantised along the "
        "other axis", "codes", axis=one.axis)


def _of_few_codes(seen: Seen, made: Sequence[Quantised]) -> Iterator[Finding]:
    """Codes of a small part of the range beside scales that were made for the whole of it."""
    for found in few_codes(made):
        yield _finding(
            seen, found.one, f"the codes of {found.one.tensor.name} come to {found.largest} at most, those of the "
            f"{found.others} other matrices to {found.usual}, and {found.one.scale_name} was not made for that: "
            f"restored it is {found.times:.3g} times smaller than its siblings", "range", largest=found.largest,
            usual=found.usual, times=round(found.times, 3))


def _of_one_number(seen: Seen, made: Sequence[Quantised]) -> Iterator[Finding]:
    """Codes that each line was scaled for by itself, beside one scale for all of them."""
    for one in one_number(made):
        yield _finding(
            seen, one, f"{one.scale_name} is {one.scales.max():.4g} in all {len(one.scales)} lines, and every line of "
            f"{one.tensor.name} comes to the end of the range: its codes were made with a scale a line, as in the "
            "other matrices, and those scales were lost", "one-number", scale=float(one.scales.max()))


def _of_scales(seen: Seen, made: Sequence[Quantised], usual: int) -> Iterator[Finding]:
    """Scales that do not go against the spread of their codes, where those of all others do."""
    known = [(q, r) for q in made if q.said in (None, usual) and math.isfinite(r := q.goes_with(usual))]
    known.sort(key=lambda pair: pair[1])
    z = np.arctanh(np.clip([r for _, r in known], -0.995, 0.995))
    for first in range(len(known) - 1, math.ceil(_SHARE * len(known)) - 1, -1):
        if first < _OTHERS or z[first] - z[first - 1] < _GAP:
            continue
        middle = float(np.median(z[:first]))
        errors = [(v - middle) * math.sqrt(len(q.scales) - 3) for v, (q, _) in zip(z[first:], known[first:],
                                                                                 strict=True)]
        if math.tanh(middle) <= _AGAINST and min(errors) >= _ERRORS:
            for q, r in known[first:]:
                yield _finding(
                    seen, q, f"{q.scale_name} does not go with the codes of {q.tensor.name}: scales and spreads of the "
                    f"{_AXES[usual]}s correlate with {r:.2f}, and with {math.tanh(middle):.2f} in the {first} other "
                    f"matrices (none above {known[first - 1][1]:.2f}): they are of other lines", "scales",
                    Severity.MEDIUM if min(errors) < 2 * _ERRORS else None, Bearing.SIGN, correlation=round(r, 3))
            return


def _against(seen: Seen, made: Sequence[Quantised], usual: int | None) -> Iterator[Finding]:
    """What does not restore to the matrix before quantisation, where most of the others do, or whose scales are of it.
    """
    for path, tensors in _before(seen, made):
        fits = [(q, w, _errors(q, w)) for q in made if (w := _of(tensors, q)) is not None]
        good = [e for q, _, e in fits if min(e) <= _RESTORED]
        axis = usual if usual is not None else Counter(
            int(np.argmin(e)) for e in good).most_common(1)[0][0] if good else None
        found = []
        for one, weights, errors in fits:
            expected = one.said if one.said is not None else axis
            if expected is not None and errors[expected] <= _RESTORED:
                continue
            found += [f for f in [_unlike(seen, one, weights, errors, expected, len(good), path)] if f is not None]
        if fits:
            yield from found
            return


def _unlike(seen: Seen, one: Quantised, weights: NDArray[np.float64], errors: Sequence[float], expected: int | None,
            good: int, path: str) -> Finding | None:
    for other in (0, 1):
        if other != expected and expected is not None and errors[other] * _TIMES < errors[expected] and (
                errors[other] <= _RESTORED and good > _OTHERS):
            return _finding(
                seen, one, f"{one.tensor.name} is off {errors[expected]:.2g} of the norm of {path} with one scale a "
                f"{_AXES[expected]}, and {errors[other]:.2g} with one a {_AXES[other]}: it was quantised along the "
                "other axis", "codes", axis=other, error=round(errors[expected], 4))
        largest = np.abs(weights).max(axis=1 - other)
        if other == one.axis or len(largest) != len(one.scales) or not (largest > 0).all():
            continue
        ratio = one.scales * 127 / largest
        if np.abs(ratio - 1).max() < _SAME and np.ptp(largest) > _RESTORED * largest.max():
            return _finding(
                seen, one, f"{one.scale_name} holds the largest of every {_AXES[other]} of {one.tensor.name} in {path} "
                f"over 127, and its codes were not made along {_AXES[other]}s: restored it is off "
                f"{min(errors):.2g} of the norm", "scales", axis=other, error=round(min(errors), 4))
    if good > _OTHERS and min(errors) > _TIMES * _RESTORED:
        return _finding(
            seen, one, f"{one.tensor.name} times {one.scale_name} is off {min(errors):.2g} of the norm of {path}, to "
            f"which {good} other matrices restore to {_RESTORED:.0%}", "other", error=round(min(errors), 4))
    return None


def _errors(one: Quantised, weights: NDArray[np.float64]) -> tuple[float, float]:
    """How far the restored matrix is off with scales of rows, and of columns, in norms."""
    found = []
    for axis in (0, 1):
        restored = one.restored(axis)
        found.append(math.inf if restored is None else float(
            np.linalg.norm(restored - weights) / max(np.linalg.norm(weights), 1e-300)))
    return found[0], found[1]


def _of(tensors: Mapping[str, Tensor], one: Quantised) -> NDArray[np.float64] | None:
    """The matrix before quantisation, under the same name or as the one matrix of that shape in the module."""
    head, _, last = one.tensor.name.rpartition(".")
    names = [one.tensor.name, f"{head}.weight".lstrip("."), f"{head}.{last.removeprefix('q')}".lstrip("."),
             one.tensor.name.removesuffix("_q")]
    found = next((t for n in names if (t := tensors.get(n)) is not None), None)
    if found is None or not found.floating or found.shape != one.tensor.shape or found.nbytes > 8 * MOST_BYTES:
        return None
    values = found.load().astype(np.float64).reshape(one.shape)
    return values if np.isfinite(values).all() and values.any() else None


def _before(seen: Seen, made: Sequence[Quantised]) -> Iterator[tuple[str, Mapping[str, Tensor]]]:
    """The second file, else those in the folder that hold most of the matrices as real numbers."""
    if seen.other is not None:
        yield os.path.basename(seen.other.path), seen.other.part.tensors
        return
    if not seen.main or len(made) < _OTHERS:
        return
    home = Path(seen.path) if os.path.isdir(seen.path) else Path(seen.path).parent
    own = {os.path.realpath(t.file) for t in seen.checkpoint.tensors} | {os.path.realpath(seen.path)}
    try:
        files = [p for p in sorted(home.iterdir()) if p.is_file() and os.path.realpath(p) not in own
                 and (p.suffix in SUFFIXES or p.name.endswith(".index.json"))][:_MOST_FILES]
    except OSError:
        return
    for path in files:
        tensors = _read(path)
        held = [t for q in made if (t := tensors.get(q.tensor.name)) is not None and t.floating
                and t.shape == q.tensor.shape]
        if 2 * len(held) >= len(made):
            yield path.name, tensors


def _read(path: Path) -> Mapping[str, Tensor]:
    try:
        found: Checkpoint = read_checkpoint(str(path))
    except TraindxError:
        return {}
    return found.weights.tensors


def _restored(seen: Seen) -> Iterator[Finding]:
    """Real numbers that are whole steps by columns, with codes that were made along rows, where the others' rows are.
    """
    alike = [s for s in seen.weights if s.tensor.dtype == "float32" and len(s.tensor.shape) == 2]
    square = [s for s in alike if s.tensor.rows == s.tensor.shape[1] >= SHORTEST and s.tensor.nbytes <= MOST_BYTES]
    if len(alike) <= _OTHERS or not square:
        return
    rows = {s.name: in_steps(s) for s in alike}
    stepped = sum(rows.values())
    for stats in square if stepped >= max(_OTHERS, _SHARE * len(alike)) else ():
        if not rows[stats.name] and _by_columns(stats.tensor.load(MOST_BYTES).astype(np.float64)):
            yield RULE.finding(
                f"the columns of {stats.name} are whole steps of eight bits, of which every row reaches the end of the "
                f"range; in {stepped} other matrices the rows are: its codes were made along rows and multiplied with "
                f"the scales of columns ({seen.path})", seen.where(stats.name), seen.path, bearing=Bearing.CAUSE,
                measured={"kind": "restored", "name": stats.name, "axis": 1, "others": stepped})


def _by_columns(weights: NDArray[np.float64]) -> bool:
    if not np.isfinite(weights).all() or not weights.any(axis=0).all():
        return False
    sizes = np.abs(weights.T)
    if not all(on_steps(column[column > 0]) for column in sizes[:: max(1, len(sizes) // SHORTEST)]):
        return False
    codes = np.stack([_in_codes(column) for column in sizes], axis=1)
    return axis_of(codes) == 0


def _in_codes(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Magnitudes as multiples of the least distance between two of them."""
    levels = np.unique(np.concatenate(([0.0], sizes)))
    gaps = np.diff(levels)
    gaps = gaps[gaps > 1e-6 * levels[-1]]
    return np.asarray(np.rint(sizes / float(np.median(gaps[gaps <= 1.5 * gaps.min()]))))


def _finding(seen: Seen, one: Quantised, statement: str, kind: str, severity: Severity | None = None,
             bearing: Bearing = Bearing.CAUSE, **measured: float) -> Finding:
    return RULE.finding(f"{statement} ({seen.path})", seen.where(one.tensor.name), seen.path, bearing=bearing,
                        severity=severity, measured={"kind": kind, "name": one.tensor.name,
                                                     "scales": one.scale_name, **measured})
