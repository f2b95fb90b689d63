"""Where the rules on captured calls say that it was seen."""

from __future__ import annotations

from dataclasses import dataclass

from traindx_tools.finding import Location

SOURCE = "torch probe: captured call"
PADDING_MATTERS = 1e-2
"""Of a standard deviation of the output: below it is the edge of a convolution, or rounding."""


@dataclass(frozen=True)
class Where:
    """A model, after so many optimizer steps."""

    model: str
    step: int
    rank: int = 0

    def at(self, file: str | None = None, line: int | None = None) -> Location:
        """As the place of a finding."""
        return Location(file=file, line=line, module=self.model, step=float(self.step), rank=self.rank)
