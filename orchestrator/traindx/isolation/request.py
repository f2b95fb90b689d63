"""What is asked: the command, the symptom, and the bounds within which it may be run again and again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from traindx_tools.errors import BadUsage, UnreadableInput

RUNS = 100
SECONDS = 600.0


@dataclass(frozen=True)
class Request:
    """`command`: the person's consent to run it in copies of the workspace."""

    command: str
    workspace: Path = field(default_factory=Path.cwd)
    fails_if: tuple[str, ...] = ()
    """Conditions of which one makes a run bad; `exit` where there is none."""
    runs: int = RUNS
    """Most runs."""
    seconds: float = SECONDS
    """Most seconds of one run."""
    out: Path | None = None
    """Where outcomes are kept; None: below scratch/debug of the workspace."""
    at: str | None = None
    """Where in the workspace the run reads what is tried."""
    told: Callable[[str], None] = lambda line: None
    """Hears of each step."""

    def checked(self) -> Request:
        """Itself. Raises BadUsage or UnreadableInput for what makes no sense."""
        if not self.command.strip():
            raise BadUsage("--run needs a command, as in --run 'python train.py'")
        if self.runs < 1 or not 0 < self.seconds < math.inf:
            raise BadUsage(f"--budget is a number of runs from 1 on and --timeout a number of seconds above 0, got "
                           f"{self.runs} and {self.seconds:g}")
        if not self.workspace.is_dir():
            raise UnreadableInput(f"{self.workspace}: there is no such folder; --workspace names the folder of the "
                                  "training code, which is copied for each run")
        return self
