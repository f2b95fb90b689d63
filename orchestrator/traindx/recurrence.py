"""Is a finding of the new run the one that was cited? By what it is about and by its value, not by its rule alone.

A loss that settled at the floor of a softmax taken twice and one that now stays at ln(classes) are two findings of one
rule: the fix removed the first, and the second says something else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from traindx.effect import Level, spread
from traindx.model import Diagnosis
from traindx_tools.finding import Finding

_ABOUT = ("kind", "metric", "group", "module", "term")
"""Measured values that say what a finding is about; places and counts of records differ from run to run."""
_VALUES = ("level", "value")
"""Measured values that say where it stands."""

Levels = Mapping[str, Level]


def cited_findings(diagnosis: Diagnosis) -> tuple[Finding, ...]:
    """The findings of the cited evidence, as far as an instrument made it."""
    return tuple(Finding.from_json(dict(e.finding)) for e in diagnosis.evidence if e.rule and e.finding)


def alike(one: Finding, other: Finding) -> bool:
    """Whether two findings of one rule are about the same thing; what only one of them tells does not part them."""
    pairs = [(one.measured.get(k), other.measured.get(k)) for k in _ABOUT]
    return one.rule == other.rule and all(a is None or b is None or a == b for a, b in pairs)


def is_cited(finding: Finding, diagnosis: Diagnosis) -> bool:
    """Whether a finding of a cited rule is about what was cited; evidence without a finding tells no more than it."""
    of_rule = [f for f in cited_findings(diagnosis) if f.rule == finding.rule]
    return not of_rule or any(alike(finding, f) for f in of_rule)


def same_finding(old: Finding, new: Finding, before: Levels, after: Levels) -> bool:
    """Whether `new` says what `old` said: about the same thing, with a value within the spread of `effect.spread`.

    `before`, `after`: the levels of the two runs, for the noise of the metric.
    """
    pairs = [(old.measured.get(k), new.measured.get(k)) for k in _VALUES]
    return alike(old, new) and all(_agree(a, b, _noise(old, before), _noise(new, after)) for a, b in pairs)


def seen_again(new: Finding, known: Iterable[Finding], before: Levels, after: Levels) -> bool:
    """Whether one of the known findings is the new one."""
    return any(same_finding(old, new, before, after) for old in known)


def _agree(old: object, new: object, noise_old: float, noise_new: float) -> bool:
    if not isinstance(old, (int, float)) or not isinstance(new, (int, float)):
        return True
    if not (math.isfinite(old) and math.isfinite(new)):
        return math.isfinite(old) == math.isfinite(new)
    return abs(new - old) <= spread([Level(old, noise_old)], [Level(new, noise_new)])


def _noise(finding: Finding, levels: Levels) -> float:
    name = f"{finding.measured.get('group') or ''} {finding.measured.get('metric') or ''}".strip()
    return levels[name].noise if name in levels else 0.0
