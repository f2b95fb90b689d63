"""The entry: sources in, findings and notes out."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from traindx_tools.finding import Finding
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import SourceFile, read_sources
from traindx_tools.on_logs.run import Artifact
from traindx_tools.rules import RuleModule, rules_in

ROOMS = ("traindx_tools.on_code.torch_rules", "traindx_tools.on_code.jax_rules")


@dataclass(frozen=True, eq=False)
class AuditResult:
    """What an audit saw. `notes` tells of files that could not be read or followed."""

    findings: tuple[Finding, ...]
    notes: tuple[Artifact, ...]
    project: Project


def audit(paths: Sequence[str | Path]) -> AuditResult:
    """Audit files and folders of Python code. Nothing of it is imported or run.

    Findings are ordered by severity, then file and line. Unreadable files become notes, not errors.
    """
    with _undisturbed():
        files, notes = read_sources(paths)
        result = audit_sources(files)
    return AuditResult(result.findings, (*notes, *result.notes), result.project)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Without cyclic garbage collection: nothing becomes garbage here, and walking millions of nodes costs a third."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def audit_sources(files: Sequence[SourceFile]) -> AuditResult:
    """Audit sources that were parsed already."""
    project = Project.of(files)
    notes = [Artifact(f.path, "python", note=f"followed in part: {why}") for f, why in project.failures]
    found: list[Finding] = []
    for module in (m for room in ROOMS for m in rules_in(room)):
        try:
            found += checked(module, project)
        except Exception as error:  # noqa: BLE001 - one rule's defect must not silence the others
            notes.append(Artifact(module.rule.id, "rule", note=f"stopped: {type(error).__name__}: {error}"))
    found.sort(key=lambda f: (-f.severity.rank, f.where.file or "", f.where.line or 0, f.rule))
    return AuditResult(tuple(found), tuple(notes), project)


def checked(module: RuleModule, project: Project) -> list[Finding]:
    """The findings of one rule, one for each place and kind."""
    unique: dict[tuple[str, str | None, int | None, object], Finding] = {}
    for finding in module.check(project):
        key = (finding.rule, finding.where.file, finding.where.line, finding.measured.get("kind"))
        known = unique.get(key)
        if known is None or finding.severity.rank > known.severity.rank:
            unique[key] = finding
    return list(unique.values())
