"""What was looked at, and what became of it: the same of a log, a source and a configuration."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LostLines:
    """Lines of a log that hold numbers and were used for nothing, where they are so many that it matters."""

    count: int
    of: int
    """Lines of the log that are not empty."""
    line: int
    """The number of the first one, counted from 1."""
    example: str
    """Its text, as it may be shown."""
    form: str = ""
    """A template for `--line` that such lines have, "" where none could be guessed."""


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
    unread: str = ""
    """Columns of a table whose cells are no numbers, an example of each and what to do: a part of `note`."""
    lost: LostLines | None = None
    """The same where they are many."""
    in_part: str = ""
    """Why the file was not read to its end (a packed stream that breaks off, a bound): a part of `note`."""
