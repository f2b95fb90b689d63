"""Confidence by the engine's arithmetic on checked evidence; what a model says of its own certainty is not asked.

To the log-odds that triage gave a failure mode, checked claims add or take a little: a line of code 1.5, a line of a
log 0.5, a documented case 0.5; 1.0 more where two specialists name the same line, 0.5 where a documented case and a
line of code meet. All claims together move a mode by at most 3.0, and a mode that no instrument speaks for is not
moved: the models decide where instruments left it open, and make no diagnosis alone.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath

from traindx.investigators.claude_code.checking import Proven
from traindx.model import Evidence
from traindx_tools.finding import Strength
from traindx_tools.triage import Hypothesis, compete

CODE_LINE = 1.5
LOG_LINE = 0.5
SOURCE = 0.5
BOTH = 0.5
AGREED = 1.0
MOST = 3.0
CODE = frozenset({".py", ".ipynb", ".yaml", ".yml", ".toml", ".cfg", ".ini", ".sh"})
"""Suffixes of files that say what is done, not what came of it."""

UNLISTED_PRIOR = -3.0
"""Log-odds of a cause that the catalog does not know, before evidence: as for its rarer modes."""

INSTRUMENT = {Strength.DIRECT: 3.0, Strength.CIRCUMSTANTIAL: 1.5, Strength.PATTERN: 0.5}
"""For a cause that the catalog does not know: what a cited finding of an instrument is worth, by its strength."""


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
    return min(score, MOST)


def about(mode: str, proven: Iterable[Proven]) -> tuple[Proven, ...]:
    """The claims about one failure mode."""
    return tuple(p for p in proven if p.failure_mode == mode)


def weighed(hypotheses: Sequence[Hypothesis], proven: Sequence[Proven]) -> tuple[Hypothesis, ...]:
    """The hypotheses with checked claims weighed in, the likeliest first."""
    return shifted(hypotheses, {h.mode.id: moved(about(h.mode.id, proven)) for h in hypotheses}, proven)


def shifted(hypotheses: Sequence[Hypothesis], shifts: Mapping[str, float],
            proven: Sequence[Proven] = ()) -> tuple[Hypothesis, ...]:
    """The hypotheses with log-odds added by failure mode, the likeliest first; one that nothing speaks for stays."""
    scores = {h.mode.id: h.score + (shifts.get(h.mode.id, 0.0) if h.speaks_for else 0.0) for h in hypotheses}
    out = [_again(h, scores, hypotheses, proven) for h in hypotheses]
    return tuple(sorted(out, key=lambda h: (-h.confidence, -h.score, h.mode.id)))


def _again(found: Hypothesis, scores: Mapping[str, float], hypotheses: Sequence[Hypothesis],
           proven: Sequence[Proven]) -> Hypothesis:
    shift = scores[found.mode.id] - found.score
    rivals_moved = any(scores[h.mode.id] != h.score for h in hypotheses)
    if shift == 0.0 and not rivals_moved:
        return found
    shown = [h for h in hypotheses if h is not found and _compete(found, h)]
    cap = max([found.strength.cap, *(Strength.CIRCUMSTANTIAL.cap for p in about(found.mode.id, proven)
                                     if p.kind == "line" and p.supports)])
    sure = confidence(scores[found.mode.id], [scores[h.mode.id] for h in shown], unshown(found, shown))
    return dataclasses.replace(found, score=scores[found.mode.id], confidence=min(sure, cap))


def _compete(one: Hypothesis, other: Hypothesis) -> bool:
    if one.speaks_for and other.speaks_for:
        return compete(one.mode, one.speaks_for[0], other.mode, other.speaks_for[0])
    return bool(set(one.mode.symptoms) & set(other.mode.symptoms))


def confidence(score: float, rivals: Iterable[float], rest: float = 0.0) -> float:
    """exp(s) / (1 + exp(s) + sum of exp(rivals) + rest): the engine's formula; "unknown" always takes part with 0."""
    others = list(rivals)
    top = max(0.0, score, *others)
    total = (1.0 + rest) * math.exp(-top) + math.exp(score - top) + sum(math.exp(s - top) for s in others)
    return math.exp(score - top) / total


def unshown(found: Hypothesis, shown: Sequence[Hypothesis]) -> float:
    """The sum of exp(score) of the rivals that triage weighed and did not show, by its own confidence in `found`."""
    if not 0.0 < found.confidence < 1.0 or not found.speaks_for:
        return 0.0
    own = math.exp(min(found.score, 50.0))
    return max(own / found.confidence - own - 1.0 - sum(math.exp(min(h.score, 50.0)) for h in shown), 0.0)


def unlisted(cited: Iterable[Evidence], proven: Sequence[Proven], hypotheses: Sequence[Hypothesis]) -> float:
    """Confidence of a cause that the catalog does not know: from cited findings of instruments and checked claims."""
    found = {e.id: Strength(e.strength) for e in cited if e.finding is not None}
    if not found:
        return 0.0
    score = UNLISTED_PRIOR + sum(INSTRUMENT[s] for s in found.values()) + moved(proven)
    caps = [s.cap for s in found.values()]
    caps += [Strength.CIRCUMSTANTIAL.cap for p in proven if p.kind == "line" and p.supports]
    rivals = [h for h in hypotheses if h.speaks_for]
    rest = unshown(rivals[0], [h for h in rivals[1:] if _compete(rivals[0], h)]) if rivals else 0.0
    return min(confidence(score, [h.score for h in rivals], rest), max(caps))


def lowered(sure: float, against: Sequence[Proven]) -> float:
    """A confidence after checked observations that speak against the cause: its log-odds less what they take."""
    if not against or not 0.0 < sure < 1.0:
        return sure
    odds = math.log(sure / (1.0 - sure)) - abs(moved([dataclasses.replace(p, supports=False) for p in against]))
    return 1.0 / (1.0 + math.exp(-odds))
