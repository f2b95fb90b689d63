"""What a project has written down about itself, and how a session adds to it.

Read: `.agents/knowledge/constraints.md`, `fix_patterns.md`, `failure_modes/*.toml` and `MEMORY.md`, each bounded. The
texts are data that an investigator may quote; nothing in them changes what a session is allowed to do. Written: only
with the user's consent, only by appending, only to these files.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Knowledge:
    """The project's own notes, as text."""

    constraints: str = ""
    fix_patterns: str = ""
    memory: str = ""
    failure_modes: tuple[tuple[str, str], ...] = ()
    """(file name, TOML text) of the project's own failure modes."""
    skipped: tuple[str, ...] = ()
    """Files that were not read, and why."""
