"""Moments of Adam that no gradients can have made: squares that are zero or too small beside the mean, and moments that
passed through a narrower type.

The mean of gradients and that of their squares are of the same gradients. By the inequality of Cauchy and Schwarz the
square of the first is at most (1 - b1)^2 / ((1 - b2) (1 - b1^2 / b2)) times the second, value by value, after any
number of steps. What is beyond was cut (the squares of small gradients are zero in float16) or scaled: there
the step is the mean over eps, many times what it should be. A run that keeps all its moments in a narrow type is left
alone, as are means so small that float32 itself has no square of them. Moments whose names say nothing are told by
shape and sign (`unnamed_moments.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_weights.grain import grain_of
from traindx_tools.on_weights.moment_floor import Floor, floor_of
from traindx_tools.on_weights.moment_names import FIRST, SECOND
from traindx_tools.on_weights.moments import Moments
from traindx_tools.on_weights.seen import FEWEST_SIBLINGS, Seen
from traindx_tools.on_weights.statistics import Stats
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W124",
    name="impossible-moments",
    title="Moments of the optimizer are not those of its gradients",
    severity=Severity.HIGH,
    sees="Mean of gradients against mean of their squares, value by value over a sample, and the grain of both.",
    matters="Where the squares are lost the step is divided by eps alone: single weights jump after a resume.",
    alike=("all moments kept in bfloat16 or eight bits on purpose", "parameters without gradients (both are zero)",
           "means that are themselves denormal"),
    confirm=("look for a cast of the whole optimizer's state (.half(), model.to(dtype) after loading)",
             "compare the largest step of the first update with the rate"),
    thresholds={
        "share": Threshold(1e-3, "of the values of a parameter", "a sample of 8,192 has eight of them"),
        "slack": Threshold(10.0, "times the bound", "betas may have cycled (one-cycle: 0.85 to 0.95)"),
        "least": Threshold(1e-18, "magnitude of the mean of gradients", "its square is a normal float32"),
    },
)
_SHARE, _SLACK, _LEAST = 1e-3, 10.0, 1e-18
_STEP = 100.0
"""Times the rate: gradients of one sign and size step by one, and the bound for the usual betas allows seven."""
_EPS = 1e-8
"""The default of torch and optax."""
_UNKNOWN = 1e4
"""The bound where the betas are not told: 1 / (1 - b2) for the largest in use, and b1 = 0."""
_KNOWN = {*FIRST, *SECOND, "max_exp_avg_sq"}
"""Moments of Adam and its kin; an optimizer that keeps more may keep others under these names."""


def check(seen: Seen) -> Iterator[Finding]:
    """Once a file."""
    if seen.main and seen.moments:
        beyond = list(_beyond(seen, [m for m in seen.moments if m.stats.keys() <= _KNOWN]))
        yield from beyond
        yield from _floors(seen)
        yield from _above(seen)
        if not beyond:  # else it is said there what they passed through
            yield from _grain(seen)
        yield from _negative(seen)


def bound(b1: float, b2: float) -> float:
    """The largest ratio of the squared mean of gradients to the mean of their squares; inf where there is none."""
    if not (0 <= b1 < 1 and 0 < b2 < 1 and b1**2 < b2):
        return np.inf
    return (1 - b1) ** 2 / ((1 - b2) * (1 - b1**2 / b2))


def _beyond(seen: Seen, moments: Sequence[Moments]) -> Iterator[Finding]:
    """Squares that are zero, and squares that are too small, each told once with the worst parameter."""
    zero: list[tuple[float, float, Moments]] = []
    small: list[tuple[float, float, Moments]] = []
    for one in moments:
        if one.first is None or one.second is None or len(one.first.sample) != len(one.second.sample):
            continue
        means, squares = (s.sample.astype(np.float64) for s in (one.first, one.second))
        if not (np.isfinite(means) & np.isfinite(squares)).all() or (squares < 0).any():
            continue
        far = np.abs(means) > _far(one, one.second.tensor.dtype)
        lost = far & (squares == 0)
        if lost.mean() > _SHARE:
            zero.append((float(lost.mean()), float(np.abs(means[lost]).max()), one))
        most = _SLACK * _bound_of(one)
        over = far & (squares > 0) & (means**2 / most > squares)
        if over.mean() > _SHARE:
            small.append((float(over.mean()), float((means[over] ** 2 / squares[over]).max()), one))
    if zero:
        yield _zero(seen, zero, len(moments))
    if small:
        share, most, one = max(small, key=lambda found: found[0])
        yield _finding(
            seen, one, f"the mean of squared gradients of {_called(one)} is smaller than its mean of gradients allows "
            f"in {share:.1%} of its values ({most:.3g} times, at most {_bound_of(one):.3g} for its "
            f"betas), and so it is "
            f"in {len(small)} of {len(moments)} parameters: one was scaled, or they are of different gradients",
            "too-small", share=round(share, 4), parameters=len(small))


def _far(one: Moments, dtype: str) -> float:
    """Means above are never beside a square of zero; in float16 they may be, and are told where the step is far."""
    eps = one.group.get("eps")
    eps = eps if isinstance(eps, float) and eps > 0 else _EPS
    return max(1e-6, _STEP * eps) if dtype == "float16" else _LEAST


def _bound_of(one: Moments) -> float:
    """inf where the betas are not known and `nu` may be a variance (AdaBelief)."""
    if not one.group and "exp_avg_sq" in one.stats:
        return _UNKNOWN
    betas = one.group.get("betas")
    known = (isinstance(betas, (list, tuple)) and len(betas) == 2 and all(isinstance(b, float) for b in betas)
             and "d" not in one.group)  # Prodigy scales both by its own estimate
    return bound(*betas) if known and isinstance(betas, (list, tuple)) else np.inf


def _zero(seen: Seen, found: Sequence[tuple[float, float, Moments]], of: int) -> Finding:
    share, most, one = max(found, key=lambda f: f[1] * min(1.0, 10 * f[0]))
    eps = one.group.get("eps")
    step = (f": there the step is divided by eps alone (up to {most / eps:.3g} times the rate)"
            if isinstance(eps, float) and eps > 0 else ": there the step is divided by eps alone")
    through = Counter(g for _, _, m in found if m.second is not None and (g := _passed(m.second)))
    cause = f"; what is left passed through {through.most_common(1)[0][0]}" if through else ""
    return _finding(
        seen, one, f"the mean of squared gradients of {_called(one)} is zero in {share:.1%} of its values where its "
        f"mean of gradients is not (up to {most:.3g}), and so it is in {len(found)} of {of} parameters{step}{cause}",
        "underflow", share=round(share, 4), parameters=len(found))


def _passed(stats: Stats) -> str:
    return stats.tensor.dtype if stats.tensor.dtype in ("float16", "bfloat16") else grain_of(stats)


def _grain(seen: Seen) -> Iterator[Finding]:
    """Few moments of a kind that passed through a narrower type, and one kind all of which did while the other did not.
    """
    kinds: dict[str, list[tuple[Moments, str]]] = {}
    for one in seen.moments:
        for name, stats in one.stats.items():
            if name in _KNOWN and stats.tensor.dtype in ("float32", "float64") and stats.size >= 256 and stats.largest:
                kinds.setdefault(name, []).append((one, grain_of(stats)))
    for name, found in kinds.items():
        narrow = [(m, g) for m, g in found if g and g != "steps"]
        if not narrow or len(found) < FEWEST_SIBLINGS:
            continue
        through = Counter(g for _, g in narrow).most_common(1)[0][0]
        others = [g for kind, those in kinds.items() if kind != name for _, g in those]
        few = 4 * len(narrow) <= len(found)
        if few or (len(narrow) > 0.9 * len(found) and others and not any(others)):
            rest = "the others" if few else "the other moments"
            yield _finding(
                seen, narrow[0][0], f"{name} of {len(narrow)} of {len(found)} parameters ({_called(narrow[0][0])} "
                f"first) holds only values of {through} in a wider type, and {rest} do not: it "
                f"passed through {through}",
                "grain", Severity.MEDIUM, Bearing.SIGN, type=through, parameters=len(narrow))


def _floors(seen: Seen) -> Iterator[Finding]:
    """One smallest square in several parameters; in one alone it may be how its gradients come."""
    floors: dict[float, list[Floor]] = {}
    for one in seen.moments:
        if one.stats.keys() <= _KNOWN and (floor := floor_of(one)) is not None:
            floors.setdefault(floor.value, []).append(floor)
    for value, found in floors.items():
        if len(found) >= FEWEST_SIBLINGS or (len(found) > 1 and found[0].called):
            worst = max(found, key=lambda f: f.share)
            number = f", {worst.called}," if worst.called else ""
            yield _finding(
                seen, worst.moments, f"the mean of squared gradients of {_called(worst.moments)} is {value:.3g}"
                f"{number} in {worst.share:.1%} of its values, all of different means of gradients, and nowhere "
                f"smaller; so it is in {len(found)} of {len(seen.moments)} parameters: it was cut there", "cut",
                share=round(worst.share, 4), parameters=len(found), floor=value)


_AT_MOST = (("exp_avg_sq", "max_exp_avg_sq", 1, "amsgrad keeps the largest of all squares"),
            ("grad_avg", "square_avg", 2, "the square of a mean is at most the mean of the squares"))
"""Moments of which one to a power is never above the other, with the reason."""


def _above(seen: Seen) -> Iterator[Finding]:
    for small, large, power, why in _AT_MOST:
        found = []
        for one in seen.moments:
            if small in one.stats and large in one.stats and one.stats[small].tensor.dtype in ("float32", "float64"):
                low, high = (one.stats[n].sample.astype(np.float64) for n in (small, large))
                if len(low) == len(high) and np.isfinite(low).all() and np.isfinite(high).all():
                    share = float((np.abs(low) ** power > 1.01 * high + 1e-30).mean())
                    found += [(share, one)] if share > _SHARE else []
        if found:
            share, one = max(found, key=lambda f: f[0])
            yield _finding(seen, one, f"{small}{'^2' * (power == 2)} of {_called(one)} is above {large} in {share:.1%} "
                           f"of its values, and so it is in {len(found)} of {len(seen.moments)} parameters: {why}, so "
                           "they are of different steps", "above", share=round(share, 4), parameters=len(found))


def _negative(seen: Seen) -> Iterator[Finding]:
    """In trees; W111 tells those of torch."""
    found = [m for m in seen.moments if m.optimizer is None and m.second is not None and m.second.low < 0]
    if found and found[0].second is not None:
        yield _finding(seen, found[0], f"the mean of squared gradients of {_called(found[0])} is "
                       f"{found[0].second.low:.3g}, and negative in {len(found)} parameters", "negative",
                       parameters=len(found))


def _called(one: Moments) -> str:
    called = f"parameter {one.key}" if one.optimizer is not None else str(one.key)
    return f"{called} ({one.told})" if one.told else called


def _finding(seen: Seen, one: Moments, statement: str, kind: str, severity: Severity | None = None,
             bearing: Bearing = Bearing.CAUSE, **measured: float | str) -> Finding:
    return RULE.finding(f"{statement} ({seen.path})", Location(file=seen.path, module=one.where), seen.path,
                        bearing=bearing, severity=severity, measured={"kind": kind, "name": one.where, **measured})
