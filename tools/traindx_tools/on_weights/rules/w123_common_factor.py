"""Between two checkpoints, or two parts of one, tensors are the others times one factor.

Training moves each weight its own way. Where every tensor that moved is its earlier self times one number, somebody
multiplied: an average that was not corrected for its start (1 - beta^n), a sum that should be a mean over ranks, a
scale that was folded in and not taken out. So is a part of the tensors that is multiplied exactly while the rest was
trained. An average beside its model is near it, not equal: there the factor must be the same over matrices and vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.common_factor import Ratio, known_factor, ratios, steps_of
from traindx_tools.on_weights.renaming import match
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W123",
    name="common-factor",
    title="Tensors are those of the other checkpoint times one factor",
    severity=Severity.HIGH,
    sees="The factor of least squares between each tensor and its other self, and what it leaves, over samples.",
    matters="Every layer gives a multiple of what it was trained to: outputs, and what is averaged on, are off by it.",
    alike=("a model that was rescaled on purpose", "weight decay alone, without a gradient (a factor near one)",
           "an average over so many steps that its start is forgotten"),
    confirm=("divide by the factor in a copy and evaluate", "look for a division by the world size, or an average "
             "without a correction"),
    thresholds={
        "exact": Threshold("four times the rounding of the type", "of the norm", "training leaves more by orders"),
        "most": Threshold(0.9, "share of the tensors that moved", "some may be of a kind of their own"),
        "near": Threshold(0.02, "spread of the factors where none is exact", "trained tensors grow by other shares"),
        "far": Threshold(0.05, "distance of such a factor from one", "an average shrinks a little by itself"),
    },
)
_MOST, _NEAR, _FAR, _REST = 0.9, 0.02, 0.05, 0.3
_OF_DECAY = 0.1
"""Distance from one up to which weight decay without a gradient makes such factors."""
_FEWEST = 3


def check(seen: Seen) -> Iterator[Finding]:
    """The main part against the other file, and against averages beside it in the same file."""
    if not seen.main:
        return
    if seen.other is not None:
        pairs = match(seen.part.tensors, seen.other.part.tensors).pairs
        stats = [(seen.stats[a], seen.other.stats[b]) for a, b in pairs
                 if a in seen.stats and b in seen.other.stats and not _kept(seen, seen.stats[a])]
        steps = steps_of([seen.checkpoint, seen.other.checkpoint])
        yield from _judged(seen, list(ratios(stats)), steps, seen.path, seen.other.path)
    for part in seen.checkpoint.parts:
        if part is seen.part or part.auxiliary:
            continue
        beside = [(s, seen.measured[id(t)]) for n, s in seen.stats.items() if (t := part.tensors.get(n)) is not None
                  and id(t) in seen.measured and not _kept(seen, s)]
        if 2 * len(beside) > len(part.tensors):
            names = (f"{seen.part.key or 'the weights'} in {seen.path}", part.key or "the weights")
            yield from _judged(seen, list(ratios(beside)), steps_of([seen.checkpoint]), *names)


def _kept(seen: Seen, stats: Stats) -> bool:
    return not stats.tensor.floating or seen.is_table(stats)


def _judged(seen: Seen, found: Sequence[Ratio], steps: Sequence[int], one: str, other: str) -> Iterator[Finding]:
    moved = [r for r in found if not r.still and r.telling]
    exact = [r for r in moved if r.exact]
    if sum(r.matrix for r in moved) < 2:
        return
    groups = _groups(exact)
    if len(exact) >= _MOST * len(moved):
        for group in groups:
            yield _finding(seen, group, moved, found, steps, one, other, "all" if len(groups) == 1 else "groups")
    elif exact:
        yield from (_finding(seen, g, moved, found, steps, one, other, "part") for g in groups
                    if any(r.matrix for r in g))
    else:
        near = _common(moved)
        if near:
            yield _finding(seen, near, moved, found, steps, one, other, "near")


def _groups(exact: Sequence[Ratio]) -> list[list[Ratio]]:
    """Tensors of one factor each, the most first."""
    groups: list[list[Ratio]] = []
    for ratio in sorted(exact, key=lambda r: r.factor):
        last = groups[-1][-1] if groups else None
        if last is not None and abs(ratio.factor / last.factor - 1) <= 4 * max(last.rounding, ratio.rounding):
            groups[-1].append(ratio)
        else:
            groups.append([ratio])
    return sorted(groups, key=len, reverse=True)


def _common(moved: Sequence[Ratio]) -> list[Ratio]:
    """The tensors of one factor where none is exact; [] where it is not common to matrices and vectors, or near one."""
    alike = [r for r in moved if r.rest < _REST and r.factor > 0]
    if len(alike) < max(_FEWEST, 0.75 * len(moved)):
        return []
    logs = np.log([r.factor for r in alike])
    middle = float(np.median(logs))
    close = [r for r, log in zip(alike, logs, strict=True) if abs(log - middle) <= _NEAR]
    if not close or abs(middle) < max(_FAR, 10 * _spread(close)) or len(close) < _MOST * len(alike):
        return []
    kinds = {r.matrix for r in close}
    return close if kinds == {True, False} else []


def _spread(group: Sequence[Ratio]) -> float:
    """Half of what lies between the tenth and the ninetieth of a hundred, relative."""
    factors = np.array([r.factor for r in group])
    return float(np.ptp(np.quantile(factors, (0.1, 0.9)))) / 2 / abs(float(np.median(factors)))


def _finding(seen: Seen, group: Sequence[Ratio], moved: Sequence[Ratio], found: Sequence[Ratio],
             steps: Sequence[int], one: str, other: str, kind: str) -> Finding:
    factor, spread = float(np.median([r.factor for r in group])), _spread(group)
    known = known_factor(factor, spread, steps)
    still = sum(r.still for r in found)
    name = max(group, key=lambda r: r.matrix).name
    rest = {"part": f"; the other {len(moved) - len(group)} that moved were trained or have another ratio",
            "groups": f"; the other {len(moved) - len(group)} that moved have other ratios"}.get(kind, "")
    rest += f"; {still} are the same" if still else ""
    decay = kind == "part" and not known and abs(abs(factor) - 1) < _OF_DECAY and factor > 0
    what = f" ({known})" if known else " (as weight decay without a gradient makes it)" if decay else ""
    return RULE.finding(
        f"{len(group)} of the {len(moved)} tensors that differ between {one} and {other} are the first times "
        f"{factor:.6g}{what}, with a spread of {spread:.2g}{rest} ({name})", seen.where(name), seen.path,
        bearing=Bearing.CAUSE if kind != "near" or known else Bearing.SIGN,
        severity=Severity.INFO if decay else Severity.MEDIUM if kind in ("part", "near") and not known else None,
        measured={"kind": kind, "name": name, "factor": factor, "spread": spread, "tensors": len(group),
                  "of": len(moved), "known": known})
