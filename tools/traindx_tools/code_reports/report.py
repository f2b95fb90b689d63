"""An audit as a person or a CI job gets it: cached by content, narrowed to rules and to a change, exceptions heeded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from traindx_tools.artifact import Artifact
from traindx_tools.code_audit.cache import Cache, key_of
from traindx_tools.code_audit.entry import audit_sources, placed
from traindx_tools.code_audit.parallel import processes_for
from traindx_tools.code_audit.results import RuleResults
from traindx_tools.code_reports.changed_code import ChangedLines, belonging, related
from traindx_tools.code_reports.selection import Selection, rule_ids
from traindx_tools.code_reports.suppression import Suppressed, heeded
from traindx_tools.collection import keep_to_the_end, undisturbed
from traindx_tools.finding import Finding
from traindx_tools.on_code.source import NOT_PARSED, unparsed
from traindx_tools.source_files import configuration
from traindx_tools.source_files.texts import FOLDER, Text, read_texts

LONG = 50_000
"""Lines from which on a person is told that it takes a while."""
LINES_A_SECOND = 8_000
"""On one core of a machine of 2024, see benchmarks/audit_peers.md."""


@dataclass(frozen=True, eq=False)
class AuditReport:
    """What an audit tells. `findings` are ordered by severity, then file and line."""

    findings: tuple[Finding, ...]
    suppressed: tuple[Suppressed, ...]
    notes: tuple[Artifact, ...]
    """Files that could not be read or followed."""
    texts: tuple[Text, ...]
    """The files that were audited."""
    found: int
    """How many Python files the paths name or hold, those that could not be read among them; with a change, only those
    that it needs are audited."""
    cached: bool = False

    @cached_property
    def judged(self) -> int:
        """How many of the files could be parsed."""
        unread = {n.path for n in self.notes if n.note.startswith(NOT_PARSED)}
        return sum(t.path not in unread for t in self.texts)

    @cached_property
    def by_path(self) -> Mapping[str, Text]:
        """The audited files by path."""
        return {t.path: t for t in self.texts}


def audit_report(
    paths: Sequence[str | Path],
    *,
    given: Iterable[Text | Artifact] = (),
    selection: Selection | None = None,
    changes: ChangedLines | None = None,
    cache: Cache | None = None,
    say: Callable[[str], None] | None = None,
    is_last: bool = False,
) -> AuditReport:
    """Audit files and folders of Python code. Nothing of it is imported or run.

    `given`: texts that were read elsewhere (standard input). `selection`: which rules speak of which files. `touched`:
    tell only what belongs to this change. `cache`: where results are remembered; None remembers nothing. `say` is told
    what takes long. `is_last`: the process ends afterwards, and memory need not be given back before.
    """
    chosen = selection or Selection()
    texts, notes = read_texts(paths, chosen.excludes)
    for one in given:
        if isinstance(one, Text):
            texts.append(one)
        else:
            notes.append(one)
    found = len(texts) + sum(n.format != FOLDER for n in notes)
    used = texts if changes is None else related(texts, changes)
    results, cached = _results(used, cache, say or (lambda text: None), is_last)
    told, suppressed = heeded(results.findings, used, rule_ids())
    told.sort(key=_order)
    if changes is not None:
        told = belonging(told, used, changes)
        kept = {id(f) for f in belonging([s.finding for s in suppressed], used, changes)}
        suppressed = [s for s in suppressed if id(s.finding) in kept]
    notebooks = [t for t in used if t.cells]
    return AuditReport(
        tuple(placed(f, notebooks) for f in told if chosen.wants(f)),
        tuple(Suppressed(placed(s.finding, notebooks), s.reason) for s in suppressed if chosen.wants(s.finding)),
        (*notes, *results.notes), tuple(used), found, cached)


def _results(texts: Sequence[Text], cache: Cache | None, say: Callable[[str], None],
            is_last: bool) -> tuple[RuleResults, bool]:
    """What the rules say of these files, and whether that was remembered."""
    if not texts:
        return RuleResults(), False
    key = "" if cache is None else key_of(texts)
    known = None if cache is None else cache.load(key)
    if known is not None:
        return known, True
    notes: list[Artifact] = []
    lines = sum(t.text.count("\n") for t in texts)
    if lines >= LONG:
        say(f"following {len(texts):,} files, {lines:,} lines: about {lines // LINES_A_SECOND:,} s the first time")
    with undisturbed(), configuration.recording() as opened:
        result = audit_sources(unparsed(texts, notes), processes_for(lines))
        if is_last and lines >= LONG:
            keep_to_the_end(result)
    results = RuleResults(list(result.findings), [*notes, *result.notes])
    if cache is not None:
        cache.store(key, results, opened)
    return results, False


def _order(finding: Finding) -> tuple[int, str, int, str]:
    return -finding.severity.rank, finding.where.file or "", finding.where.line or 0, finding.rule
