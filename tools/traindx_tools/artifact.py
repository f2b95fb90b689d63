"""What was looked at, and what became of it: the same of a log, a source and a configuration."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Artifact:
    """One file that was looked at and what became of it."""

    path: str
    format: str
    """The reader's name, e.g. "hf_trainer_state", "lightning_csv", "free_text", "python", "yaml", "unknown"."""
    rows: int = 0
    note: str = ""
    """What a person should know: "12 damaged lines skipped", "refused: is a pickle"."""
    unused: int = 0
    """Lines of free text that hold numbers of which nothing was taken."""
