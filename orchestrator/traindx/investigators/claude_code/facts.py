"""What the engine tells the lead after its own first look: facts, and last its guess with how often such are right.

Facts are what was measured: the course of things, the first anomaly, differences to a run that works, odd ranks and
shards. What the engine made of them, and what it read in the code by rules, is its guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from traindx.agents import estimate_tokens
from traindx.diagnose import Report
from traindx_tools.catalog.trust import how_often_right
from traindx_tools.finding import Finding, Severity
from traindx_tools.triage import timeline

MOST_TOKENS = 800
"""Of the facts, and of the guess."""
_EACH = 300
_SHARDS, _RANKS, _WEIGHTS, _CODE = "D", "R", "W", "C"


def facts(report: Report) -> str:
    """What was measured, the most telling first, at most `MOST_TOKENS`; "" where nothing was."""
    return within(_facts(report), MOST_TOKENS)


def guess(report: Report) -> str:
    """The engine's ranking, what its rules read in the code, and the measured hit rate of such leads."""
    return within(_guess(report), MOST_TOKENS)


def within(lines: Iterable[str], tokens: int) -> str:
    """As many lines as fit; how many do not is said."""
    known = list(lines)
    for count in range(len(known), 0, -1):
        left = len(known) - count
        text = "\n".join([*known[:count], *([f"[{left} more lines were left out]"] if left else [])])
        if estimate_tokens(text) <= tokens:
            return text
    return ""


def _facts(report: Report) -> Iterator[str]:
    measured = [f for f in report.seen.findings if f.rule[:1] != _CODE]
    course = [f for f in timeline(measured) if f.severity is not Severity.INFO]
    if course:
        yield f"First anomaly: {_told(report, course[0])}"
    comparison = report.comparison
    if comparison is not None:
        yield from (f"Differs from the run that works: {_short(m.statement())}" for m in comparison.metrics
                    if m.step is not None)
        yield from (f"Difference: {e.kind}: {_short(e.statement)}" for e in comparison.ranked)
    odd = [f for f in measured if f.rule[:1] in (_RANKS, _SHARDS, _WEIGHTS) and f not in course[:1]]
    yield from (f"Odd {_WHERE[f.rule[:1]]}: {_told(report, f)}" for f in odd)
    yield from (_told(report, f) for f in course[1:] if f not in odd)
    yield from (_told(report, f) for f in measured if f not in course and f not in odd)


_WHERE = {_RANKS: "rank", _SHARDS: "shard or row", _WEIGHTS: "tensor"}


def _guess(report: Report) -> Iterator[str]:
    hypotheses = report.seen.verdict.hypotheses
    if not any(h.speaks_for for h in hypotheses):
        yield f"The engine has no lead. {_short(report.seen.verdict.reason)}"
    else:
        yield how_often_right(hypotheses)
    for found, said in zip(hypotheses, report.hypotheses, strict=True):
        if found.speaks_for:
            at = f" at {said.location}" if said.location else ""
            because = ", ".join(report.exhibits[w.finding] for w in found.speaks_for)
            yield f"{said.failure_mode} ({said.confidence:.2f}){at}, for it {because}: {_short(said.issue)}"
    yield from (_told(report, f) for f in report.seen.findings if f.rule[:1] == _CODE)


def _told(report: Report, finding: Finding) -> str:
    return f"[{report.exhibits[finding]}] {_short(finding.statement)} ({report.places.describe(finding)})"


def _short(text: str) -> str:
    said = " ".join(text.split())
    return said if len(said) <= _EACH else f"{said[:_EACH]} [...]"
