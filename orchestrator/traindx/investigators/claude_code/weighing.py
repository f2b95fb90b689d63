"""Confidence by the engine's arithmetic on checked evidence; what a model says of its own certainty is not asked.

To the log-odds that triage gave a failure mode, checked claims on what was read add or take a little: a line of code
1.5, a line of a log 0.5, a documented case 0.5, an instrument's output 0.5; 2.0 more where two specialists name the
same line, 0.5 where a documented case and a line of code meet; together at most 4.0, and a mode that no instrument
speaks for is not moved by them. What was run is direct evidence: a probe's output counts 5.0, two of them 6.5, for a
cause of the catalog or of nobody's, whatever the instruments saw.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath

from traindx.investigators.claude_code.checking import Proven
from traindx.model import Evidence
from traindx_tools.competition import share
from traindx_tools.finding import Bearing, Strength
from traindx_tools.triage import BELOW, STATED, Hypothesis

CODE_LINE = 1.5
LOG_LINE = 0.5
SOURCE = 0.5
MEASURED = 0.5
BOTH = 0.5
AGREED = 2.0
MOST = 4.0
RUN = 5.0
"""One output of a probe or an experiment: with the prior of an unlisted cause 0.88, with a line of code beside it 0.97;
a cause at the cap of 0.97 falls below 0.2 by one that speaks against it."""
FURTHER_RUN, MOST_RUN = 1.5, 8.0
CODE = frozenset({".py", ".ipynb", ".yaml", ".yml", ".toml", ".cfg", ".ini", ".sh"})
"""Suffixes of files that say what is done, not what came of it."""

UNLISTED_PRIOR = -3.0
"""Log-odds of a cause that the catalog does not know, before evidence: as for its rarer modes."""

READ_LINE = Bearing.SIGN.cap
"""The most that a claim carries of which only the quoted line was checked, not the reading of it."""

INSTRUMENT = {"cause": 3.0, "sign": 1.5, "companion": 0.5}
"""For a cause that the catalog does not know: what a cited finding of an instrument is worth, by its bearing."""


def moved(proven: Iterable[Proven]) -> float:
    """Log-odds that checked claims about one cause add (or take), each place counted once."""
    known = tuple(proven)
    return _side([p for p in known if p.supports]) - _side([p for p in known if not p.supports])


def _side(proven: Sequence[Proven]) -> float:
    readers: dict[str, set[str]] = {}
    for p in proven:
        if p.kind == "line":
            readers.setdefault(p.place, set()).add(p.who)
    code = [place for place in readers if PurePath(place.rpartition(":")[0]).suffix in CODE]
    sources = {p.source for p in proven if p.kind == "source"}
    score = CODE_LINE * len(code) + LOG_LINE * (len(readers) - len(code)) + SOURCE * len(sources)
    score += BOTH if code and sources else 0.0
    score += AGREED if any(len(readers[place]) > 1 for place in code) else 0.0
    score += MEASURED * len({p.place for p in proven if p.kind == "measured"})
    return min(score, MOST) + _run(proven)


def _run(proven: Sequence[Proven]) -> float:
    outputs = {p.source for p in proven if p.kind == "run"}
    return min(RUN + FURTHER_RUN * (len(outputs) - 1), MOST_RUN) if outputs else 0.0


def about(mode: str, proven: Iterable[Proven]) -> tuple[Proven, ...]:
    """The claims about one failure mode."""
    return tuple(p for p in proven if p.failure_mode == mode)


def weighed(hypotheses: Sequence[Hypothesis], proven: Sequence[Proven]) -> tuple[Hypothesis, ...]:
    """The hypotheses with checked claims weighed in, the likeliest first."""
    return shifted(hypotheses, {h.mode.id: moved(about(h.mode.id, proven)) for h in hypotheses}, proven)


def shifted(hypotheses: Sequence[Hypothesis], shifts: Mapping[str, float],
            proven: Sequence[Proven] = ()) -> tuple[Hypothesis, ...]:
    """The hypotheses with log-odds added by failure mode, the likeliest first; one that nothing speaks for stays."""
    given = {h.mode.id: shifts.get(h.mode.id, 0.0) if h.speaks_for else 0.0 for h in hypotheses}
    out = [_again(h, given, proven) for h in hypotheses]
    return tuple(sorted(out, key=lambda h: (-h.confidence, -h.score, h.mode.id)))


def _again(found: Hypothesis, given: Mapping[str, float], proven: Sequence[Proven]) -> Hypothesis:
    own = given[found.mode.id]
    moved_rivals = {k: given[k] for k in found.rivals if given.get(k)}
    if not found.rivals or (own == 0.0 and not moved_rivals):
        return found
    rivals = {k: mass * math.exp(given.get(k, 0.0)) for k, mass in found.rivals.items()}
    score = found.score + own
    return dataclasses.replace(found, score=score, rivals=rivals,
                               confidence=min(share(score, rivals), _cap(found, proven)))


def _cap(found: Hypothesis, proven: Sequence[Proven]) -> float:
    """What the evidence carries; a line that was checked carries what a sign in the code does."""
    lines = [p for p in about(found.mode.id, proven) if p.kind == "line" and p.supports]
    own = max((w.cap for w in found.speaks_for), default=Bearing.COMPANION.cap)
    if found.mode.effect:
        return min(own, BELOW)
    if found.held:  # what a reader adds counts as something that agrees, once it was checked
        return max(found.confidence, STATED) if lines else min(own, BELOW)
    return max(own, READ_LINE) if lines else own


def confidence(score: float, rivals: Iterable[float]) -> float:
    """exp(s) / (1 + exp(s) + sum of exp(rivals)): for a cause that the catalog does not know."""
    return share(score, {"": 1.0, **{str(i): math.exp(min(r, 500.0)) for i, r in enumerate(rivals)}})


def direct(proven: Iterable[Proven]) -> bool:
    """True where something that was run speaks for the cause, and nothing that was run against it."""
    runs = {p.supports for p in proven if p.kind == "run"}
    return runs == {True}


def proven_cause(cited: Iterable[Evidence], proven: Sequence[Proven]) -> float:
    """Confidence of a cause that something which was run speaks for: no guess is its rival, only what was checked."""
    found = [e for e in {e.id: e for e in cited}.values() if e.finding is not None]
    score = UNLISTED_PRIOR + sum(INSTRUMENT[e.bearing] for e in found) + moved(proven)
    return min(confidence(score, ()), Strength.RAN.cap)


def unlisted(cited: Iterable[Evidence], proven: Sequence[Proven], hypotheses: Sequence[Hypothesis]) -> float:
    """Confidence of a cause that the catalog does not know: from cited findings of instruments and checked claims."""
    found = [e for e in {e.id: e for e in cited}.values() if e.finding is not None]
    if not found:
        return 0.0
    score = UNLISTED_PRIOR + sum(INSTRUMENT[e.bearing] for e in found) + moved(proven)
    caps = [e.cap for e in found]
    caps += [READ_LINE for p in proven if p.kind == "line" and p.supports]
    return min(confidence(score, [h.score for h in hypotheses if h.speaks_for]), max(caps))


def lowered(sure: float, against: Sequence[Proven]) -> float:
    """A confidence after checked observations that speak against the cause: its log-odds less what they take."""
    if not against or not 0.0 < sure < 1.0:
        return sure
    odds = math.log(sure / (1.0 - sure)) - abs(moved([dataclasses.replace(p, supports=False) for p in against]))
    return 1.0 / (1.0 + math.exp(-odds))
