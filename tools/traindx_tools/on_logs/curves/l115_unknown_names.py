"""Of a log whose names no rule knows: what its series look like, and what stands out in them.

No rule judges such a log. What can be said of any series is said all the same: the course of each in a few words, so
that a person can give it its name, then the anomaly that stands out most, and the others. None of it is a
fault by itself: where the names are unknown, nobody knows which way is worse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.anomalies import Anomaly, Kind, anomalies_of
from traindx_tools.on_logs.anomalies.listing import in_words
from traindx_tools.on_logs.looks import looks_like
from traindx_tools.on_logs.roles import is_known
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.rules import Rule, Threshold

SERIES, NAMED, TOLD = 40, 12, 20

RULE = Rule(
    id="L115",
    name="unknown-names",
    title="What series of unknown names look like",
    severity=Severity.LOW,
    sees="all series of a log in which no rule knows a name",
    matters="With the names of the loss and the learning rate the rules can judge the log.",
    alike=("A log of which one name is known: it is judged by the rules, and --anomalies lists the rest.",),
    confirm=("Say what they stand for: traindx diagnose PATH --name 'NAME=loss'.",
             "List what stands out with its chance: traindx log PATH --anomalies."),
    thresholds={"told": Threshold(TOLD, "anomalies", "more are listed by traindx log PATH --anomalies")},
)


def check(run: Run) -> Iterator[Finding]:
    """How the series look, then the strongest anomaly and the others; nothing where a name is known."""
    strange = [s for s in run.series if len(s)]
    if not strange or any(map(is_known, strange)):
        return
    yield _looks(strange)
    found = sorted(((s, a) for s in strange[:SERIES] for a in anomalies_of(s)), key=lambda one: _strength(*one),
                   reverse=True)
    alike = Counter((s.original, a.kind, a.up) for s, a in found)
    once: dict[tuple[str, Kind, bool], tuple[Series, Anomaly]] = {}
    for s, a in found:
        once.setdefault((s.original, a.kind, a.up), (s, a))
    said = [_words(*one, alike[key]) for key, one in once.items()]
    if said:
        s, a = found[0]
        yield _anomaly(s, a, said[0])
        if len(said) > 1:
            yield _others(s, a, said[1:])


def _looks(strange: list[Series]) -> Finding:
    said = [f"{s.original} {looks_like(s)}" for s in strange[:NAMED]]
    more = f"; and {len(strange) - NAMED} more" if len(strange) > NAMED else ""
    first = strange[0]
    return RULE.finding(f"no rule knows these names: {'; '.join(said)}{more}", first.at(0, -1), first.source,
                        bearing=Bearing.COMPANION, measured={"kind": "looks", "names": len(strange)})


def _strength(s: Series, a: Anomaly) -> tuple[float, float]:
    """What cannot be or was not computed first, then what lasts, by its size in scatters; slow courses last."""
    if a.kind in (Kind.IMPOSSIBLE, Kind.COPIED, Kind.FLAT):
        return 3.0 if a.kind is Kind.IMPOSSIBLE else 1.5, float(a.end - a.start)
    return {Kind.STEP: 2.0, Kind.SPIKE: 2.0, Kind.HALVED: 1.5}.get(a.kind, 1.0), float(a.size)


def _words(s: Series, a: Anomaly, count: int) -> str:
    return f"{s.original}: {in_words(s, a)}" + (f", and {count - 1} more like it" if count > 1 else "")


def _anomaly(s: Series, a: Anomaly, said: str) -> Finding:
    return RULE.finding(said, s.at(a.start, a.end), s.source, bearing=Bearing.COMPANION,
                        measured={"kind": "anomaly", "metric": s.original, "anomaly": a.kind.value, "size": a.size,
                                  "position": float(s.position[a.start])})


def _others(s: Series, a: Anomaly, said: list[str]) -> Finding:
    """The others in one finding, behind the strongest."""
    more = f"; and {len(said) - TOLD} more" if len(said) > TOLD else ""
    return RULE.finding(f"also: {'; '.join(said[:TOLD])}{more}", s.at(a.start, a.end), s.source,
                        bearing=Bearing.COMPANION, measured={"kind": "others", "count": len(said)})
