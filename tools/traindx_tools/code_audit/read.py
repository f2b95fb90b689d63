"""Paths in, programs out: what is known of training programs from their text alone. Nothing is imported or run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from traindx_tools.code_audit.entry import audit
from traindx_tools.on_code.filling.program_of import program_of
from traindx_tools.program.program import Program

_NO_RULE = "C000"


def programs_of(paths: Sequence[str | Path]) -> tuple[list[Program], list[str]]:
    """The programs of these files and folders, and a note for each file that could not be read."""
    result = audit(paths, rules=[_NO_RULE])
    programs = [program_of(project) for project in result.projects if project.files]
    return programs, [f"{n.path}: {n.note}" for n in result.notes]
