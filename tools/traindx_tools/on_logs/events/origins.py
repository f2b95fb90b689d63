"""One origin of what a run loses: a host, file or worker with which its slow, skipped or growing records come.

An evaluation takes time on purpose, and a long batch takes longer than a short one. A host is no better than the
others of its kind by nature: of one variable (`node-17` among `node-*`) the other values are the control. They have to
be alike among themselves, the one has to be unlike them, and what it costs is what its records take beyond theirs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traindx_tools.on_logs.curves.pauses import even
from traindx_tools.on_logs.events.anomalous import AnomalySet
from traindx_tools.on_logs.events.associating import Along, Association
from traindx_tools.on_logs.events.chance import followed
from traindx_tools.on_logs.events.slow import MEMORY, RATES, rises, taken_by
from traindx_tools.on_logs.run import Floats, Ints

WHOLE = 0.8
"""Share of the slow records that have the origin, and of its records that are slow."""
CONTROLS = 3
"""Other values of the same variable, each with `FEWEST` records, from which the one stands beside its like."""
FEWEST = 3
MOST_ODD = 3
"""Further values that may be as slow, at most a quarter of all."""
ALIKE = 1.5
"""Ratio up to which the usual times of the other values are alike: beyond, time goes with what the variable counts."""
APART = 1.5
"""Ratio to the slowest of the others from which one is unlike them."""
_LEVELS = frozenset({"debug", "info", "warn", "warning", "error", "critical", "fatal", "notice", "trace",
                     "d", "i", "w", "e", "c", "f"})
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Loss:
    """What a run loses with one origin. `kind`: "time", "updates" or "memory". `share`: of all of the run's.

    `with_it`, `usual`: what one of its records takes, and any other. `slow`: such records, `having` of which have it;
    `records`: those that have it, `bad` of which are slow.
    """

    kind: str
    event: Association
    share: float
    with_it: float
    usual: float
    slow: int
    having: int
    records: int
    bad: int
    others: tuple[str, ...] = ()
    """Further values of the same variable that are as unlike the rest: a second host."""
    instead: tuple[str, ...] = ()
    """What stands at the same records, and may be the origin as well."""

    @property
    def sure(self) -> float:
        """The lower bound (Jeffreys, a twentieth) that the slow have it, times that what has it is slow; shared with
        what stands at the same records."""
        return _lower(self.having, self.slow) * _lower(self.bad, self.records) / (1 + len(self.instead))


def loss_of(along: Along) -> Loss | None:
    """What the run loses with the first thing that goes along; None where that is no origin, or rightly takes more."""
    a, first = along.anomalies, along.told[0] if along.told else None
    if first is None or not _is_origin(first) or len(along.siblings) < CONTROLS:
        return None
    found = _updates(a, first) if a.what == "skipped steps" else _measured(a, first, along)
    if found is None or found.having < WHOLE * found.slow or found.bad < WHOLE * found.records:
        return None
    return replace(found, instead=along.instead)


def _measured(a: AnomalySet, first: Association, along: Along) -> Loss | None:
    if len(a.lines) != len(a.series):
        return None
    if a.series.name.startswith(MEMORY) and a.up:
        return _grown(a, first)
    taken = taken_by(a.series)
    if taken is None or a.up is a.series.name.startswith(RATES) or even(a.places.astype(np.float64)):
        return None
    return _time(first, along, taken)


def _is_origin(one: Association) -> bool:
    """Whether it is one of several like things: a numbered one, a path, a name; no level of a logger, no message."""
    event = one.event
    return event.kind in ("value", "word") and not one.echo and event.value.strip(":").lower() not in _LEVELS


def _records(a: AnomalySet, one: Association) -> Ints:
    """The records that have it: those at its lag where that is one, else the anomalies that it goes ahead of."""
    return _at(one.times, one, len(a.lines)) if one.near == one.far else _followed(a.all_places, one)


def _at(times: Ints, one: Association, records: int) -> Ints:
    moved = times + one.near
    return moved[moved < records]


def _followed(every: Ints, one: Association) -> Ints:
    return every[followed(every, one.times, one.near, one.far)]


def _time(one: Association, along: Along, taken: Floats) -> Loss | None:
    a, known = along.anomalies, np.isfinite(taken) & (taken >= 0)
    own = np.zeros(len(taken), bool)
    own[_records(a, one)] = True
    mine = taken[known & own]
    if len(mine) < FEWEST:
        return None
    with_it = float(np.median(mine))
    like = {v: t[np.isfinite(t)] for v, times in along.siblings.items() if len(t := taken[_at(times, one, len(taken))])}
    usual_of = {v: float(np.median(t)) for v, t in like.items() if len(t)}
    odd = _odd(usual_of, with_it)
    for value in odd:
        own[_at(along.siblings[value], one, len(taken))] = True
    mine, others = taken[known & own], taken[known & ~own]
    usual = float(np.median(others)) if len(others) > len(mine) else 0.0
    rest = {v: t for v, t in usual_of.items() if v not in odd}
    if not 0 < usual * APART <= with_it or len(rest) < CONTROLS or _by_size(one.event.value, with_it, rest):
        return None
    bound = float(np.sqrt(usual * with_it))
    slow = known & (taken > bound)
    return Loss("time", one, float(mine.sum() - len(mine) * usual) / float(taken[known].sum()), with_it, usual,
                int(slow.sum()), int((slow & own).sum()), len(mine), int((mine > bound).sum()), odd)


def _odd(usual_of: Mapping[str, float], with_it: float) -> tuple[str, ...]:
    """The others that are as slow, where these are few: two hosts of twenty-four."""
    middle = float(np.median([*usual_of.values()])) if usual_of else 0.0
    found = tuple(v for v, t in usual_of.items() if t > float(np.sqrt(max(middle, 0.0) * with_it)))
    return found if len(found) <= min(MOST_ODD, len(usual_of) // 4) else ()


def _by_size(value: str, with_it: float, usual_of: Mapping[str, float]) -> bool:
    """Whether time goes with what the variable counts (a length): the others differ too, or it is the largest of all
    and takes no more than in proportion."""
    usual = np.array([*usual_of.values()])
    alike = bool(usual.max() <= ALIKE * usual.min())
    if not alike and with_it <= APART * float(usual.max()):
        return True
    size, sizes = _size(value), np.array([_size(v) for v in usual_of])
    if np.isnan(size) or np.isnan(sizes).any():
        return not alike
    if not alike:
        return not bool(sizes.min() < size < sizes.max())
    return bool(size > sizes.max() and size * float(np.median(usual)) >= with_it * float(np.median(sizes)))


def _size(value: str) -> float:
    """The only number in it."""
    found = _NUMBER.findall(value)
    return float(found[0]) if len(found) == 1 and len(found[0]) <= 15 else float("nan")


def _updates(a: AnomalySet, one: Association) -> Loss:
    """Skipped steps have no record of their own: the place of each is the record that comes next."""
    own, every = _records(a, one), np.unique(a.all_places)
    having = int(np.isin(every, own).sum())
    return Loss("updates", one, having / (len(a.lines) + len(every)), 1.0, 0.0, len(every), having, len(own),
                int(np.isin(own, every).sum()))


def _grown(a: AnomalySet, one: Association) -> Loss | None:
    """Memory that grows at its records and at no others."""
    at = rises(a.series)
    if len(at) < FEWEST:
        return None
    rise = np.diff(a.series.values, prepend=a.series.values[0])
    own = np.unique(_records(a, one))
    having = np.isin(at, own)
    return Loss("memory", one, float(rise[at[having]].sum() / rise[at].sum()), float(np.median(rise[own])),
                float(np.median(np.abs(rise))), len(at), int(having.sum()), len(own), int(np.isin(own, at).sum()))


def _lower(k: int, n: int) -> float:
    """The 5 % quantile of Beta(k + 1/2, n - k + 1/2), by its density on a grid."""
    x: NDArray[np.float64] = (np.arange(4000) + 0.5) / 4000
    log = (k - 0.5) * np.log(x) + (n - k - 0.5) * np.log1p(-x)
    weight = np.exp(log - log.max())
    return float(x[int(np.searchsorted(np.cumsum(weight), 0.05 * weight.sum()))])
