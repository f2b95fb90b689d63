"""The fixes that a diagnosis offers: changes of lines, by traindx or by hand, and how to see that they worked."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pydantic import Field, model_validator

from traindx.place_words import one_and_also
from traindx.values import Model, Quoted

OptionName = Literal["A", "B"]
"""A is the targeted fix, B the broader one."""


class ProposedEdit(Model):
    """A certain change: the lines `line`..`end_line` (1-based, inclusive) become `replacement`.

    `original` is what these lines hold, without their line ends. "" as a replacement deletes the lines, "x" and "x\\n"
    both mean one line. An insertion before `line` has `end_line == line - 1` and an empty `original`; into a path that
    does not exist yet, at line 1, it creates the file. `path` is relative to the workspace, with forward slashes.
    """

    path: str
    line: int = Field(ge=1)
    end_line: int = Field(ge=0)
    original: str
    replacement: str

    @model_validator(mode="after")
    def _span(self) -> ProposedEdit:
        if self.end_line < self.line - 1:
            raise ValueError(f"{self.path}: end_line {self.end_line} lies before line {self.line}")
        if self.end_line == self.line - 1 and self.original:
            raise ValueError(f"{self.path}:{self.line}: an insertion replaces nothing, so `original` must be empty")
        return self


class Instruction(Model):
    """A change that a person makes by hand: where, and exactly what."""

    path: str
    line: int = Field(ge=1)
    end_line: int | None = None
    text: str
    place: str = ""
    """The place as a person finds it, where that is not `path:line`: `train.ipynb:cell 3:2`."""

    @property
    def where(self) -> str:
        """The place in words."""
        return self.place or f"{self.path}:{self.line}"

    @property
    def last_line(self) -> int:
        """The last line that the instruction covers."""
        return self.line if self.end_line is None else self.end_line


class ShownText(NamedTuple):
    """The text that a place gets, line by line; no lines: the place is deleted."""

    path: str
    first: int
    last: int
    lines: tuple[str, ...]


class Fix(Model):
    """One way to remove the cause, and how to see that it worked."""

    option: OptionName
    summary: str
    edits: tuple[ProposedEdit, ...] = ()
    instructions: tuple[Instruction, ...] = ()
    metric: str = ""
    """Which metric should move and how far."""
    verify: str = ""
    """How to check that it worked."""
    otherwise: str = ""
    """What to try next if it does not."""
    fragile: str = ""
    """What stays fragile after this option."""
    change: Quoted = ""
    """The change in words, for where no line of code is known to put it at."""

    @property
    def places(self) -> tuple[tuple[str, int, int], ...]:
        """(path, first line, last line) of everything that this option touches; last < first is an insertion."""
        edits = tuple((e.path, e.line, e.end_line) for e in self.edits)
        return edits + tuple((i.path, i.line, i.last_line) for i in self.instructions)

    def where(self, about: str | None = None) -> str:
        """Its places in words, one first: `train.py:20, also train.py:33`; `about`: the place that it is for."""
        return one_and_also(self.told, about or "")

    @property
    def told(self) -> tuple[str, ...]:
        """The same as a person finds them."""
        return (*(f"{e.path}:{e.line}" for e in self.edits), *(i.where for i in self.instructions))

    @property
    def bound(self) -> tuple[ShownText, ...]:
        """The new text of each edit: what `policy` lets an edit put there."""
        return tuple(ShownText(e.path, e.line, e.end_line, tuple(e.replacement.split("\n")) if e.replacement else ())
                     for e in self.edits)
