"""What invariants say of a text, as findings with edits."""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.edits.remedies import patches
from traindx_tools.finding import Finding, Location
from traindx_tools.invariants.breach import Breach
from traindx_tools.on_code.answers import answered
from traindx_tools.on_code.filling.program_of import program_of
from traindx_tools.on_code.project import Project
from traindx_tools.rules import RuleModule

ROOM = "traindx_tools.invariants"


def findings(module: RuleModule, project: Project) -> Iterator[Finding]:
    """The findings of one id of an invariant; the invariant itself is asked once for all its ids."""
    program = program_of(project)
    told: list[Breach] | None = program.memo.get(module.module)
    if told is None:
        told = program.memo[module.module] = list(module.check(program))
    yield from (_finding(module, breach) for breach in told if breach.id == module.rule.id)


def program_failures(project: Project) -> list[str]:
    """What could not be asked of a program that was judged, each with its error."""
    known = answered(program_of, project)
    return known.failed if known is not None else []


def _finding(module: RuleModule, breach: Breach) -> Finding:
    at = breach.at
    where = Location(file=at.file, line=at.line, end_line=at.end_line, module=at.function, quote=at.quote)
    return module.rule.finding(breach.statement, where, at.file, bearing=breach.bearing, severity=breach.severity,
        measured=breach.measured, patch=patches(breach.remedy) if breach.remedy is not None else ())
