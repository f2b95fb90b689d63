"""A place in this process: what each run shows is computed from what it was given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from traindx_tools.experiments.place import Prepared
from traindx_tools.experiments.trace import Trace


@dataclass
class InProcess:
    """Stands for the protected copy: what a run prints and its exit code are computed from what it was given."""

    folder: Path
    answer: Callable[[Prepared], tuple[str, int]] = lambda prepared: ("", 0)
    runs: list[Prepared] = field(default_factory=list)
    fingerprint: str = ""

    def run(self, prepared: Prepared, enough: object = None, *, seconds: float) -> Trace:
        self.runs.append(prepared)
        folder = self.folder / str(len(self.runs))
        folder.mkdir(parents=True)
        output, code = self.answer(prepared)
        (folder / "output.log").write_text(output)
        return Trace(folder, ended=True, exit_code=code, seconds=0.5)
