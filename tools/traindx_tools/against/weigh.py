"""Which differences could explain what is wrong: the ranking, with a reason beside each.

Arithmetic that a person can follow: how often such a difference matters at all (a learning rate more than a seed), how
much the diagnosis is about it, how large it is. Nothing here proves a cause; the order says what to change back first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from traindx_tools.against.code import CodeDifference
from traindx_tools.against.data import DataDifference
from traindx_tools.against.families import OTHER
from traindx_tools.against.settings import SettingDifference
from traindx_tools.against.versions import FRAMEWORKS
from traindx_tools.finding import Finding, Severity
from traindx_tools.triage import Verdict

LIKELY = 0.10
"""Confidence below which a hypothesis says nothing of a difference."""


@dataclass(frozen=True)
class Explanation:
    """A difference and how well it could explain what is wrong (`weight`, larger is better), with the reasons."""

    kind: str
    """"setting", "constant", "version", "code" or "data"."""
    statement: str
    weight: float
    why: tuple[str, ...]
    undo: str
    """How to take this one difference back."""


def explanations(settings: Sequence[SettingDifference], versions: Sequence[SettingDifference],
                 code: Sequence[CodeDifference], verdict: Verdict, findings: Sequence[Finding],
                 data: Sequence[DataDifference] = ()) -> list[Explanation]:
    """Every difference, the likeliest to explain it first."""
    found = [*(_setting(d, verdict) for d in settings), *(_version(d) for d in versions),
             *(_code(d, findings, verdict) for d in code), *(_data(d, findings, verdict) for d in data)]
    return sorted(found, key=lambda e: -e.weight)


def _setting(difference: SettingDifference, verdict: Verdict) -> Explanation:
    family = difference.family
    weight = family.weight
    why: list[str] = []
    if family is not OTHER:
        why.append("seldom matters" if family.weight < 0.5 else f"a setting of the {family.name}")
    told = _about(verdict, family.anchors, family.words)
    if told and family.weight >= 0.5:
        confidence, title = told
        weight += 4 * confidence
        why.append(f"the diagnosis is about it: {title} ({100 * confidence:.0f} %)")
    factor = difference.factor
    if factor is not None and factor > 0 and family.weight >= 0.5:
        weight += min(2.0, 0.7 * abs(math.log10(factor)))
    if difference.kind == "constant":
        weight -= 0.2  # a default of the code, which a configuration may override
    undo = f"set {difference.key} to {difference.there}" if difference.there else f"leave {difference.key} unset"
    return Explanation(difference.kind, difference.statement(), weight, tuple(why), undo)


def _about(verdict: Verdict, anchors: Sequence[str], words: str) -> tuple[float, str] | None:
    """The most confident hypothesis that is about such a setting: by its first anchor, or by its title and claim."""
    for hypothesis in verdict.hypotheses:
        mode = hypothesis.mode
        if hypothesis.confidence < LIKELY:
            continue
        said = bool(words) and re.search(words, f"{mode.title} {mode.claim}", re.IGNORECASE) is not None
        if said or set(mode.anchors[:1]).intersection(anchors):
            return hypothesis.confidence, mode.title
    return None


def _version(difference: SettingDifference) -> Explanation:
    major = difference.here.split(".")[:1] != difference.there.split(".")[:1]
    weight = (1.2 if difference.key in FRAMEWORKS else 0.4) + (0.4 if major else 0.0)
    if not difference.here or not difference.there:
        weight, why = 0.2, ("only one of the runs says its version",)
    else:
        why = ("another major version" if major else "another version",)
    undo = f"install {difference.key} {difference.there}" if difference.there else \
        f"print the version of {difference.key}"
    return Explanation("version", difference.statement(), weight, why, undo)


def _code(difference: CodeDifference, findings: Sequence[Finding], verdict: Verdict) -> Explanation:
    undo = f"take {difference.name} from the working run"
    if difference.here is None or difference.there is None:
        return Explanation("code", difference.statement(), 0.5, ("only one of the runs has it",), undo)
    if not difference.functions:
        return Explanation("code", difference.statement(), 0.05, ("form only",), undo)
    blamed = [(f, line) for f in findings if f.rule[0] in "CTJ" and f.severity.rank >= Severity.MEDIUM.rank
              for line in _lines_named(f, difference)]
    if not blamed:
        return Explanation("code", difference.statement(), 1.8, ("no finding is on the lines that differ",), undo)
    cause = {id(w.finding) for h in verdict.hypotheses[:1] for w in h.speaks_for}
    first = max(blamed, key=lambda pair: (id(pair[0]) in cause, pair[0].severity.rank))
    weight = 6.0 + (2.0 if id(first[0]) in cause else 0.0)
    why = f"{first[0].rule} is on a line that differs ({difference.at(first[1])}): {first[0].title}"
    return Explanation("code", difference.statement(), weight, (why,), undo)


def _data(difference: DataDifference, findings: Sequence[Finding], verdict: Verdict) -> Explanation:
    """A file that holds something else explains more than a setting, most where the diagnosis is about that file."""
    weight = 3.0 + (min(2.0, abs(math.log10(difference.factor))) if difference.factor else 0.0)
    cause = {id(w.finding) for h in verdict.hypotheses[:1] for w in h.speaks_for}
    blamed = [f for f in findings if f.rule[0] == "D" and f.severity.rank >= Severity.MEDIUM.rank
              and (f.where.file or "").rpartition("/")[2] == difference.file.rpartition("/")[2]]
    why = tuple(f"{f.rule} is on this file: {f.title}" for f in blamed[:1])
    weight += 3.0 if blamed else 0.0
    weight += 2.0 if any(id(f) in cause for f in blamed) else 0.0
    return Explanation("data", difference.statement(), weight, why, f"take {difference.file} from the working run")


def _lines_named(finding: Finding, difference: CodeDifference) -> list[int]:
    """Lines of the file that a finding names and that differ: its own, and those in its statement."""
    changed = set(difference.lines)
    name = difference.name.rpartition("/")[2]
    where = finding.where
    own = [(where.cell, where.line)] if (where.file or "").endswith(name) and where.line else []
    told = [(int(m[1]) if m[1] else None, int(m[2])) for m in re.finditer(
        rf"(?<!\w){re.escape(name)}:(?:cell (\d+):)?(\d+)\b", finding.statement)]
    lines = (difference.joined(cell, line) for cell, line in (*own, *told))
    return [line for line in lines if line in changed]
