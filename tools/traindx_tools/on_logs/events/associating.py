"""Which candidates go along with a set of anomalies, which only seem to, and why."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from traindx_tools.on_logs.events.anomalous import FEWEST, NEAR, AnomalySet
from traindx_tools.on_logs.events.candidates import Candidate
from traindx_tools.on_logs.events.chance import Anomalies, Scanned, bound, displaced, followed, scan, scores_displaced
from traindx_tools.on_logs.events.separating import separating, shows_itself
from traindx_tools.on_logs.run import Ints

LEVEL = 0.01
"""Chance of any association at all in a log that has none."""
MOST_TOLD, MOST_RULED_OUT = 3, 4
LEAST_SHARE = 0.25
"""Share of the anomalies that an event goes ahead of at least."""
TEMPTING = 1e-3
"""Chance by a count over the whole log from which something is listed as ruled out."""
ONLY = 0.95
"""Share of occurrences at anomalies from which a line stands at nothing else: some anomalies are not seen."""
FEWEST_LIKE, MOST_LIKE = 3, 200
"""Records of another value of the same variable from which it is one to compare with; such values at most."""
EARLIER = 0.8
"""Share of the score to which two events explain as much: the earlier one comes first, it may cause the other."""


@dataclass(frozen=True, eq=False)
class Association:
    """`hits` of the anomalies have the event `near` to `far` records before; `otherwise`: occurrences without one."""

    event: Candidate
    times: Ints
    near: int
    far: int
    hits: int
    otherwise: int
    expected: float
    """Anomalies that would have it by chance."""
    chance: float
    """After all comparisons."""
    score: float
    rows: int = 0
    """Of a column: its values."""
    echo: bool = False
    """Whether its line stands at the anomalies only, always in the same record, and keeps no time of its own: a message
    about the anomaly does that, and so the order of the two is not known."""

    @property
    def precision(self) -> float:
        """The share of its occurrences that an anomaly follows."""
        return 1.0 - self.otherwise / max(1, len(self.times))


@dataclass(frozen=True, eq=False)
class Along:
    """What goes along with one set of anomalies: the surest first. `ruled_out`: what seemed to, with the reason."""

    anomalies: AnomalySet
    told: tuple[Association, ...]
    ruled_out: tuple[tuple[str, str], ...] = ()
    comparisons: int = 0
    siblings: Mapping[str, Ints] = field(default_factory=dict)
    """The records of the other values of the variable whose value stands first: its like, to compare it with."""
    instead: tuple[str, ...] = ()
    """Values of other variables at the very records of the first: which of them it is no log can tell."""


def associate(anomalies: AnomalySet, every: Sequence[Candidate], sets: int) -> Along:
    """What goes along with the anomalies. `sets`: how many sets of anomalies are asked about, for the comparisons."""
    n = len(anomalies.lines)
    placed, fewest = displaced(anomalies.places, n), max(3.0, LEAST_SHARE * len(anomalies.places) / 2)
    found: list[tuple[Candidate, Ints, Scanned]] = []
    for candidate in every:
        own = (anomalies.series, *anomalies.follows)
        if any(shows_itself(s, candidate) for s in own) or _told_by(anomalies, candidate):
            continue
        times = anomalies.records_of(candidate.lines)
        scanned = scan(placed, times) if len(times) >= fewest else None
        if scanned is not None:
            found.append((candidate, times, scanned))
    if not found:
        return Along(anomalies, ())
    compared = len(found) * sets
    highest = _highest(placed, found, math.log(compared / LEVEL))
    routine = _routine(anomalies, every)
    sure = [_association(anomalies, *_split(anomalies, c, t, s), s, highest, compared, routine)
            for c, t, s in found if s.score > 0]
    sure.sort(key=lambda a: (a.echo, -a.score, a.near, len(a.event.text)))
    surviving = [a for a in sure if a.chance <= LEVEL and a.hits >= max(3, LEAST_SHARE * len(anomalies.places))]
    once, equal = _once(surviving)
    told, companions = _apart(anomalies.places, once, compared)
    taken, by_event = {a.event.origin for a in surviving}, {a.event.origin: a for a in sure}
    ruled_out = [*companions, *equal, *_tempting(anomalies.places, n, found, taken, by_event)]
    like = _siblings(anomalies, told[0], every) if told else {}
    instead = tuple(_instead(anomalies, told[0], surviving, every)) if told else ()
    return Along(anomalies, tuple(told), tuple(ruled_out[:MOST_RULED_OUT]), compared, like, instead)


def _instead(anomalies: AnomalySet, first: Association, found: Sequence[Association], every: Sequence[Candidate]
             ) -> Iterator[str]:
    for one in found:
        other = (one.event.template, one.event.token) != (first.event.template, first.event.token)
        same = len(one.times) == len(first.times) and bool((one.times == first.times).all())
        if other and same and not one.echo and len(_siblings(anomalies, one, every)) >= FEWEST_LIKE:
            yield one.event.text


def _siblings(anomalies: AnomalySet, one: Association, every: Sequence[Candidate]) -> dict[str, Ints]:
    """Those that occur often enough to compare with, and not only beside it (the same value in another spelling)."""
    event, found = one.event, {}
    for c in every:
        if event.token >= 0 and (c.template, c.token, c.kind) == (event.template, event.token, event.kind):
            times = anomalies.records_of(c.lines)
            if c is not event and len(times) >= FEWEST_LIKE and float(np.isin(times, one.times).mean()) < 0.5:
                found[c.value] = times
        if len(found) >= MOST_LIKE:
            break
    return found


def _told_by(anomalies: AnomalySet, event: Candidate) -> bool:
    """Whether an event is the line that says that the anomaly happened."""
    return anomalies.told is not None and len(event.lines) > 0 and float(
        np.isin(event.lines, anomalies.told).mean()) >= ONLY


def _split(anomalies: AnomalySet, event: Candidate, times: Ints, s: Scanned) -> tuple[Candidate, Ints]:
    """A column with the threshold that separates best in the window that was found; anything else as it is."""
    if event.series is None:
        return event, times
    at, near, far = anomalies.places, s.near, s.far
    lags = _lags(at, times, s)
    if followed(at, times, *lags).sum() == followed(at, times, near, far).sum():
        near, far = lags
    records = np.searchsorted(anomalies.lines, event.series.line.astype(anomalies.lines.dtype), side="left")
    if len(records) and (np.diff(records) < 0).any():
        return event, times
    cut = separating(event, records, at, near, far)
    return cut, anomalies.records_of(cut.lines)


def _routine(anomalies: AnomalySet, every: Sequence[Candidate]) -> frozenset[int]:
    """Templates whose lines stand at other records than those of anomalies as well."""
    return frozenset(c.template for c in every if c.kind == "template" and not _only(
        anomalies, anomalies.records_of(c.lines)))


def _only(anomalies: AnomalySet, times: Ints) -> bool:
    """Whether these are records of anomalies and of nothing else, and in no step with a clock."""
    apart = np.diff(times)
    regular = len(apart) > 1 and int(apart.max()) - int(apart.min()) <= max(1, int(apart.min()) // 50)
    behind = followed(times, anomalies.all_places, 0, NEAR)  # an anomaly may last some records
    return len(times) > 0 and not regular and float(behind.mean()) >= ONLY


def _highest(placed: Anomalies, found: Sequence[tuple[Candidate, Ints, Scanned]], least: float
             ) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """The best score of all candidates under each displacement; not asked where none is above the bound."""
    if all(s.score < least for _, _, s in found):
        return np.full(1, np.inf)
    return np.asarray(np.max([scores_displaced(placed, times) for _, times, _ in found], axis=0))


def _association(anomalies: AnomalySet, event: Candidate, times: Ints, s: Scanned,
                 highest: np.ndarray[tuple[int, ...], np.dtype[np.float64]], compared: int,
                 routine: frozenset[int]) -> Association:
    at, every = anomalies.places, anomalies.all_places
    hit = followed(at, times, s.near, s.far)
    led = np.searchsorted(every, times + s.far, side="right") > np.searchsorted(every, times + s.near, side="left")
    moved = (1.0 + float((highest >= s.score).sum())) / (1.0 + len(highest))
    chance = max(min(1.0, math.exp(-s.score) * compared * event.tried), moved if moved > LEVEL else 0.0)
    near, far = _lags(at, times, s)
    rows = 0 if event.series is None else int(event.series.finite.sum())
    own_line = not np.isin(event.lines, anomalies.lines).all()  # a row of a table is the record itself
    echo = far == 0 and own_line and event.template not in routine and _only(anomalies, times)
    return Association(event, times, near, far, int(hit.sum()), int((~led).sum()), s.share * len(at), chance, s.score,
                       rows, echo)


def _lags(at: Ints, times: Ints, s: Scanned) -> tuple[int, int]:
    """The least and the largest lag of the middle nine tenths within the window."""
    last = np.searchsorted(times, at - s.near, side="right") - 1
    lag = (at - times[np.maximum(last, 0)])[last >= 0]
    lag = np.sort(lag[(lag >= s.near) & (lag <= s.far)])
    cut = len(lag) // 20
    return (int(lag[cut]), int(lag[len(lag) - 1 - cut])) if len(lag) else (s.near, s.far)


def _once(found: Sequence[Association]) -> tuple[list[Association], list[tuple[str, str]]]:
    """Each set of places once, and what stands at the same; of two that explain the same, the earlier first."""
    kept: list[Association] = []
    equal: list[tuple[str, str]] = []
    for one in found:
        same = next((k for k in kept if len(one.times) == len(k.times) and bool((one.times == k.times).all())), None)
        if same is None:
            kept.append(one)
        elif one.event.text != same.event.text:
            equal.append((one.event.text, f"stands at the same records as {same.event.text}"))
    if kept and kept[0].far == 0:
        first = kept[0]
        earlier = [a for a in kept[1:]
                   if a.near > 0 and a.score >= EARLIER * first.score and a.hits >= 0.9 * first.hits]
        if earlier:
            kept.remove(earlier[0])
            kept.insert(0, earlier[0])
    return kept, equal


def _apart(at: Ints, found: Sequence[Association], compared: int) -> tuple[list[Association], list[tuple[str, str]]]:
    """Those that explain anomalies which none before them does, and those that only come with them."""
    told: list[Association] = []
    companions: list[tuple[str, str]] = []
    open_ = np.ones(len(at), dtype=bool)
    for one in found:
        mine = followed(at, one.times, one.near, one.far)
        hits, left = int((mine & open_).sum()), int(open_.sum())
        share = min(0.999, one.expected / len(at))
        new = left >= FEWEST and hits > share * left and (
            bound(hits, left, share) + math.log(compared) <= math.log(LEVEL))
        if (new or not told) and len(told) < MOST_TOLD:
            told.append(one)
            open_ &= ~mine
        elif told:
            rest = f": of the {left} without that, {hits} have it" if left else ", which leaves none to explain"
            companions.append((one.event.text, f"comes with {told[0].event.text}{rest}"))
    return told, companions


def _counted(at: Ints, n: int, times: Ints, far: int) -> tuple[float, int, int]:
    """The logarithm of the chance that a count over the whole log gives, the hits, and the window."""
    hits, share = int(followed(at, times, 0, far).sum()), min(0.999, (len(times) * (far + 1) + 1) / (n + 1))
    return bound(hits, len(at), share) if hits > share * len(at) else 0.0, hits, far


def _tempting(at: Ints, n: int, found: Sequence[tuple[Candidate, Ints, Scanned]], taken: set[int],
              by_event: Mapping[int, Association]) -> list[tuple[str, str]]:
    """What a count over the whole log would take for an association, with what speaks against it."""
    out: list[tuple[float, str, str]] = []
    for event, times, _ in found:
        if event.origin in taken:
            continue
        naive, hits, far = min(_counted(at, n, times, far) for far in (0, 1, 3, 10))
        if naive < math.log(TEMPTING):
            out.append((naive, event.text, f"within {far} records ahead of {hits} of {len(at)}, but "
                                           f"{_against(by_event.get(event.origin), len(at))}"))
    return [(text, why) for _, text, why in sorted(out)]


def _against(one: Association | None, count: int) -> str:
    """Which of the hurdles it did not take."""
    if one is None:
        return "no more than near other records of the same period"
    if one.hits < max(3, LEAST_SHARE * count):
        return "of too few of them"
    return "no more than near other records of the same period, or than the best of all compared reaches by chance"
