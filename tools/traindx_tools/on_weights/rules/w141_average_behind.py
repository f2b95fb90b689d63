"""A part of an average of the weights is still where training began, or far behind, and its other parts follow.

A moving average begins as a copy of the first weights and comes nearer with each update. What begins at zero, a bias or
a shift, tells without a second file how far it has come: an average that never was updated is zero there still, and its
matrices are draws of their initialiser, beside weights that are neither. Where all parts are so, the average was never
updated at all. Without such a beginning only distances are left: all matrices of a part a tenfold further from the
weights than all those of the other parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_weights.averages import Beside, averages_of
from traindx_tools.on_weights.initialisers import normally_drawn, sharply_drawn
from traindx_tools.on_weights.movement import relative_change
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.rules import Rule, Threshold

_TIMES, _FAR, _MATRICES = 10.0, 0.2, 2

RULE = Rule(
    id="W141",
    name="average-behind",
    title="A part of the average was never updated",
    severity=Severity.HIGH,
    sees="An average of the weights beside them in one checkpoint, module by module: biases at zero, matrices at their "
         "initialiser, distances.",
    matters="What is evaluated, sampled from or served is the average: a trained part and a random one together.",
    alike=("a part that was not trained either: it is the same in both", "an average that begins after some steps",
           "a target network that is copied every so many steps"),
    confirm=("list the parameters that the update of the average goes over",
             "evaluate with the weights in place of the average"),
    thresholds={
        "times": Threshold(_TIMES, "times the distance of all other parts", "parts learn at rates of their own"),
        "far": Threshold(_FAR, "of the norm of the weights", "an average that follows is nearer"),
    },
)


@dataclass(frozen=True)
class _Module:
    """One module of the average: which of its tensors still are as at the beginning, which moved, how far it is."""

    name: str
    begun: tuple[str, ...]
    moved: tuple[str, ...]
    drawn: tuple[str, ...]
    distances: tuple[float, ...]

    @property
    def unmoved(self) -> bool:
        return not self.moved and bool(self.begun or len(self.drawn) >= _MATRICES)


def check(seen: Seen) -> Iterator[Finding]:
    """Once a checkpoint, each average beside its weights."""
    if not seen.main:
        return
    for beside in averages_of(seen.checkpoint):
        modules = [_module(seen, beside, name, keys) for name, keys in beside.modules().items()]
        behind = [m for m in modules if m.unmoved]
        following = [m for m in modules if m.moved and not m.unmoved]
        if behind and (following or not beside.target):
            yield _unmoved(seen, beside, behind, following)
        elif len(following) + len(behind) > 1 or len(modules) > 1:
            yield from _far(seen, beside, modules)


def _module(seen: Seen, beside: Beside, name: str, keys: Sequence[str]) -> _Module:
    begun: list[str] = []
    moved: list[str] = []
    drawn: list[str] = []
    distances: list[float] = []
    for key in keys:
        average, weight = beside.average[key], beside.weights[key]
        one, other = seen.measured.get(id(average)), seen.measured.get(id(weight))
        if one is None or other is None or one.nan or one.inf or other.nan or other.inf or other.constant:
            continue  # what did not move in the weights says nothing of the average
        if not average.matrix:
            zero_or_one = one.constant and one.low in (0.0, 1.0)
            (begun if zero_or_one else moved).append(key) if average.size >= 2 else None
            continue
        distances.append(relative_change(weight, average))
        if distances[-1] > 0 and _is_drawn(one) and not _is_drawn(other):
            drawn.append(key)
    return _Module(name, tuple(begun), tuple(moved), tuple(drawn), tuple(distances))


def _is_drawn(stats: Stats) -> bool:
    return sharply_drawn(stats) is not None or normally_drawn(stats) is not None


def _unmoved(seen: Seen, beside: Beside, behind: Sequence[_Module], following: Sequence[_Module]) -> Finding:
    names = ", ".join(m.name or "all of it" for m in behind[:3]) + (
        f" and {len(behind) - 3} more" if len(behind) > 3 else "")
    zeros, drawn = [k for m in behind for k in m.begun], [k for m in behind for k in m.drawn]
    signs = []
    if zeros:
        signs.append(f"{len(zeros)} biases and scales are exactly as they begin ({zeros[0]})")
    if drawn:
        signs.append(f"{len(drawn)} matrices are draws of an initialiser ({drawn[0]})")
    far = _middle([d for m in behind for d in m.distances])
    near = _middle([d for m in following for d in m.distances])
    others = (f"; {', '.join(m.name for m in following[:3])} follows to {near:.2g} of the norm" if following else "")
    what = f"{beside.key}: {names} was never updated" if following else f"{beside.key} was never updated"
    return _finding(
        seen, beside, behind[0].name,
        f"{what}: {' and '.join(signs)}, {far:.2g} of the norm away from {beside.of or 'the weights'}{others}",
        "unmoved" if following else "all-unmoved", Bearing.CAUSE, None if following else Severity.MEDIUM,
        tuple(m.name for m in behind), far, near)


def _far(seen: Seen, beside: Beside, modules: Sequence[_Module]) -> Iterator[Finding]:
    """A module of which every matrix is far, beside others of which none is."""
    told = [m for m in modules if len(m.distances) >= _MATRICES]
    for module in told:
        others = [d for m in modules if m is not module for d in m.distances]
        least = min(module.distances)
        if len(others) >= _MATRICES and least > _FAR and least > _TIMES * max(others) > 0:
            yield _finding(
                seen, beside, module.name,
                f"{beside.key}: all {len(module.distances)} matrices of {module.name} are at least {least:.2g} of "
                f"their norm away from {beside.of or 'the weights'}, and those of the other modules at most "
                f"{max(others):.2g}: this part is not updated, or is of another model", "far", Bearing.SIGN,
                Severity.MEDIUM, (module.name,), least, max(others))


def _middle(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2] if values else math.nan


def _finding(seen: Seen, beside: Beside, module: str, text: str, kind: str, bearing: Bearing,
             severity: Severity | None, modules: tuple[str, ...], far: float, near: float) -> Finding:
    place = f"{beside.key}.{module}".rstrip(".")
    return RULE.finding(
        f"{text} ({seen.path})", Location(file=seen.path, module=place), seen.path, bearing=bearing, severity=severity,
        measured={"kind": kind, "name": place, "modules": modules, "far": None if math.isnan(far) else round(far, 4),
                  "near": None if math.isnan(near) else round(near, 4)})
