"""The entry: sources in, findings and notes out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from traindx_tools.artifact import Artifact
from traindx_tools.code_audit.breaches import ROOM as INVARIANTS
from traindx_tools.code_audit.parallel import followed_and_judged
from traindx_tools.code_audit.programs import programs
from traindx_tools.collection import undisturbed
from traindx_tools.finding import Finding, Severity
from traindx_tools.notebooks.cells import in_cells
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import Source, unparsed
from traindx_tools.rules import rules_in
from traindx_tools.source_files.texts import Text, read_texts

ROOMS = ("traindx_tools.code_rules.torch_rules", "traindx_tools.code_rules.jax_rules", INVARIANTS)


_TEST_NAME = re.compile(r"(^|/)(test_[^/]*|[^/]*_test)\.py$")


@dataclass(frozen=True, eq=False)
class AuditResult:
    """What an audit saw. `notes` tells of files that could not be read or followed."""

    findings: tuple[Finding, ...]
    notes: tuple[Artifact, ...]
    projects: tuple[Project, ...]
    """What was followed in this process, one for each program (see `programs`)."""


def audit(paths: Sequence[str | Path], *, rules: Sequence[str] = ()) -> AuditResult:
    """Audit files and folders of Python code. Nothing of it is imported or run.

    `rules`: ids or their beginnings ("C1"); none means all. Findings are ordered by severity, then file and line.
    Unreadable files become notes, not errors.
    """
    texts, notes = read_texts(paths)
    result = audit_texts(texts, rules)
    return AuditResult(result.findings, (*notes, *result.notes), result.projects)


def audit_texts(texts: Sequence[Text], rules: Sequence[str] = ()) -> AuditResult:
    """Audit files that were read already. Lines of notebooks are given as cell and line."""
    with undisturbed():
        notes: list[Artifact] = []
        result = audit_sources(unparsed(texts, notes), rules=rules)
    findings = tuple(placed(f, texts) for f in result.findings)
    return AuditResult(findings, (*notes, *result.notes), result.projects)


def placed(finding: Finding, texts: Iterable[Text]) -> Finding:
    """The finding with lines of notebooks given as cell and line."""
    for text in texts:
        if text.cells and (text.path == finding.where.file or f"{text.path}:" in finding.statement
                           or any(p.file == text.path for p in finding.patch)):
            finding = in_cells(finding, text.path, text.cells)
    return finding


def _in_test(finding: Finding) -> Finding:
    """A test trains nothing that is kept: what is wrong in it is told, and never above low."""
    return finding if finding.severity.rank <= Severity.LOW.rank else replace(finding, severity=Severity.LOW)


def audit_sources(files: Sequence[Source], processes: int = 1, rules: Sequence[str] = ()) -> AuditResult:
    """Audit sources, the work shared among so many processes."""
    if not files:
        return AuditResult((), (), ())  # no rule is loaded for a run without code: a third of a second
    asked = tuple(rules) or ("C",)
    modules = [m for room in ROOMS for m in rules_in(room) if m.rule.id.startswith(asked)]
    projects, results = followed_and_judged(modules, programs(files), processes)
    notes = sorted(set(results.notes), key=lambda n: (n.format != "python", n.path))
    tests = {f.path for f in files if _TEST_NAME.search(f.path) and "def test_" in f.text}
    once = {(f.rule, f.where.file, f.where.line, f.statement): f for f in results.findings}  # programs share settings
    found = [_in_test(f) if f.where.file in tests else f for f in once.values()]
    found.sort(key=lambda f: (-f.severity.rank, f.where.file or "", f.where.line or 0, f.rule, f.statement))
    return AuditResult(tuple(found), tuple(notes), tuple(projects))
