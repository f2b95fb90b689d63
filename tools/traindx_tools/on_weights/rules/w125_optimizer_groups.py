"""Groups of an optimizer whose settings do not suit what they hold, each other, or their schedule.

Decay on biases and scales and none on matrices is two groups exchanged: the other way round is usual, decay on all or
none as well. A group whose rate is ten times off what it began with, while the other groups follow one schedule, is
driven by nobody. A schedule towards one lowest rate makes such shares differ, and is left alone; so are groups that are
empty only because a model has no biases.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_weights.optimizer_groups import (
    MATRIX,
    UNSURE,
    VECTOR,
    Group,
    beside_each_other,
    groups_of,
    labelled,
    usual_share,
)
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.tensor import Tensor
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W125",
    name="optimizer-groups",
    title="A group of the optimizer does not suit what it holds",
    severity=Severity.MEDIUM,
    sees="Weight decay by the shapes and names of the parameters, rates against initial and scheduled ones, betas, "
         "eps, and step counts of a weight and its bias.",
    matters="Scales and biases are pulled to zero while matrices grow, or a group trains at another rate than meant.",
    alike=("no decay on biases and scales", "embeddings without decay", "one lowest rate for groups of several rates",
           "a group that is empty for a model without biases"),
    confirm=("print name, shape, weight_decay and lr of each group", "compare with the groups that the code makes"),
    thresholds={
        "rate": Threshold(10.0, "times the share of the other groups", "schedules of one shape keep the shares alike"),
        "betas": Threshold("b1 < sqrt(b2), b2 >= 0.5", "", "Kingma & Ba 2015, theorem 4.1; published: 0.8 to 0.99999"),
        "eps": Threshold("1e-30 to 1", "", "published: 1e-16 (AdaBelief) to 1 (Inception)"),
    },
)
_TIMES, _BETA2, _EPS = 10.0, 0.5, (1e-30, 1.0)


def check(seen: Seen) -> Iterator[Finding]:
    """The labels of optax, and each optimizer by itself."""
    if not seen.main:
        return
    yield from _exchanged(seen, list(labelled(seen.checkpoint)))
    if not seen.checkpoint.optimizers:
        return
    for optimizer in seen.checkpoint.optimizers:
        groups = groups_of(optimizer, seen.parameters)
        yield from _exchanged(seen, groups)
        yield from _empty(seen, groups)
        yield from _rates(seen, groups)
        yield from _ranges(seen, groups)
        steps = {k: n for k, s in optimizer.state.items() if isinstance(s, Mapping) and (n := _count(s)) is not None}
        yield from _steps(seen, groups, steps)


def _exchanged(seen: Seen, groups: Sequence[Group]) -> Iterator[Finding]:
    """Decay in groups that hold no matrix, and none in groups that hold nothing else."""
    told = [(g, d) for g in groups if g.kinds and len(g.kinds) == g.count
            and (d := g.number("weight_decay")) is not None]
    decayed, spared = ([g for g, d in told if (d > 0) is on] for on in (True, False))
    vectors = sum(len(g.of(VECTOR)) for g in decayed)
    matrices = [(g, k) for g in spared for k in g.of(MATRIX)]
    if vectors < 2 or len(matrices) < 2 or any(g.of(MATRIX) for g in decayed) or any(g.of(VECTOR) for g in spared):
        return
    first = next(g for g in decayed if g.of(VECTOR))
    told_as = [g.called(k) for g, k in matrices[:2]]
    unsure = sum(len(g.of(UNSURE)) for g in decayed)
    more = f" and {unsure} embeddings or the like" if unsure else ""
    yield _finding(seen, first, f"weight decay is on {vectors} biases, scales or tokens{more} "
                   f"({first.called(first.of(VECTOR)[0])} first) and not on {len(matrices)} matrices "
                   f"({', '.join(told_as)}): the two groups are exchanged", "exchanged", Severity.HIGH,
                   vectors=vectors, matrices=len(matrices))


def _empty(seen: Seen, groups: Sequence[Group]) -> Iterator[Finding]:
    """Groups without a parameter; with a rate of their own, they were meant to hold some."""
    full = [g for g in groups if g.count]
    for group in groups:
        if group.count or not full:
            continue
        own = _base(group)
        apart = own is not None and all(b is not None and not math.isclose(own, b) for b in map(_base, full))
        rate = f" and has a rate of its own ({own:g})" if apart else ""
        yield _finding(seen, group, f"this group holds no parameter{rate}: "
                       "what selects them found none", "empty", None if apart else Severity.INFO, Bearing.SIGN)


def _base(group: Group) -> float | None:
    first = group.number("initial_lr")
    return first if first is not None else group.number("lr")


def _rates(seen: Seen, groups: Sequence[Group]) -> Iterator[Finding]:
    """Groups whose rate is another share of the initial one than in all others."""
    known = [(g, first, now) for g in groups if g.count and (first := g.number("initial_lr")) and first > 0
             and (now := g.number("lr")) is not None and now > 0]
    if len(known) < 2 or _one_lowest([(first, now) for _, first, now in known]):
        return
    shares = [now / first for _, first, now in known]
    usual, times = usual_share(shares)
    if len(known) == 2:
        usual = min(shares, key=lambda s: abs(math.log(s) - (0.0 if max(shares) > 1.5 else math.log(max(shares)))))
    elif times < len(known) / 2:
        return
    by_hand = any(k.rpartition(".")[2] == "lr_lambdas" for k in seen.checkpoint.values)
    for (group, first, now), share in zip(known, shares, strict=True):
        if max(share / usual, usual / share) >= _TIMES:
            below = share < usual
            yield _finding(
                seen, group, f"the rate is {now:g}, {share:.3g} times the {first:g} that it began with, and that of "
                f"the other groups {usual:.3g} times theirs: {share / usual:.4g} times off", "rate",
                Severity.INFO if below and by_hand else None, Bearing.SIGN, factor=share / usual)


def _one_lowest(pairs: Sequence[tuple[float, float]]) -> bool:
    """Whether all rates are one share of the initial one above one lowest rate (cosine and linear with a floor)."""
    first, now = (np.array(x) for x in zip(*pairs, strict=True))
    if np.ptp(first) < 1e-9 * first.max():
        return bool(np.ptp(now) < 1e-6 * now.max())
    share, lowest = np.polyfit(first, now, 1)
    fits = np.allclose(share * first + lowest, now, rtol=1e-3, atol=0)
    most = min(now.min(), first.min()) * 1.0001
    return bool(fits and -1e-9 <= share <= 1.0001 and -1e-9 * now.max() <= lowest <= most)


def _ranges(seen: Seen, groups: Sequence[Group]) -> Iterator[Finding]:
    """Betas and eps that nobody publishes, told once for groups that share them."""
    told: set[str] = set()
    for group in groups:
        betas = group.settings.get("betas")
        if not group.count or not isinstance(betas, (list, tuple)):
            continue
        for what in (_betas(betas), _eps(group.number("eps"))):
            if what and what not in told:
                told.add(what)
                yield _finding(seen, group, what, "range", None, Bearing.SIGN)


def _betas(betas: Sequence[Any]) -> str:
    if len(betas) != 2 or not all(isinstance(b, (int, float)) for b in betas):
        return ""
    b1, b2 = betas
    if not (0 <= b1 < 1 and 0 < b2 < 1):
        return f"betas are {b1:g} and {b2:g}, and must lie below 1: the averages never forget or grow"
    if b1**2 >= b2:
        return (f"betas are {b1:g} and {b2:g}: the squares are forgotten before the mean of gradients, and steps have "
                "no bound (they may be exchanged)")
    return f"the second beta is {b2:g}, and none below {_BETA2:g} is published" if b2 < _BETA2 else ""


def _eps(eps: float | None) -> str:
    if eps is None or _EPS[0] <= eps <= _EPS[1]:
        return ""
    return f"eps is {eps:g}, and what is published is 1e-16 to 1"


def _count(state: Mapping[str, Any]) -> float | None:
    step = state.get("step")
    if isinstance(step, Tensor) and step.size == 1:
        return float(np.asarray(step.load()).reshape(-1)[0])
    return float(step) if isinstance(step, (int, float)) and not isinstance(step, bool) else None


def _steps(seen: Seen, groups: Sequence[Group], steps: Mapping[Any, float]) -> Iterator[Finding]:
    """A weight and its bias in one group with other step counts: every gradient reaches both.

    Where most pairs differ alike, one kind was frozen for a while.
    """
    for group in groups:
        pairs = beside_each_other(group, steps)
        both = sum(n.endswith(".bias") for n in group.names.values())
        if pairs and 2 * len(pairs) <= both:
            name, bias = pairs[0]
            by_name = {n: steps[k] for k, n in group.names.items() if k in steps}
            yield _finding(seen, group, f"{name} has made {by_name[name]:g} steps and {bias} {by_name[bias]:g} (so "
                           f"{len(pairs)} of {both} pairs): every gradient reaches both, so one has the state of "
                           "another step", "steps", None, Bearing.SIGN, pairs=len(pairs))


def _finding(seen: Seen, group: Group, statement: str, kind: str, severity: Severity | None = None,
             bearing: Bearing = Bearing.CAUSE, **measured: float) -> Finding:
    return RULE.finding(f"{group.where}: {statement} ({seen.path})", Location(file=seen.path, module=group.where),
                        seen.path, bearing=bearing, severity=severity,
                        measured={"kind": kind, "name": group.where, **measured})
