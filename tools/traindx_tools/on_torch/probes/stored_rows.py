"""Always on: does reading a row of the dataset change what the dataset keeps of it (T728)?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from traindx_tools.finding import Finding
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t728_reading_writes
from traindx_tools.rows.stored_rows import StoredRows


class StoredRowsProbe(TorchProbe):
    """Compares the entries of a few rows before and after each read of them, where the reading process trains."""

    name = "stored-rows"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._rows = StoredRows()

    def next_look(self) -> int:
        """Reading is no moment of a training step."""
        return self.NEVER

    def rows_asked(self, dataset: Any, index: Any) -> None:
        """Remembers what is kept of the rows that are watched."""
        self._rows.asked(dataset, index)

    def rows_read(self, dataset: Any, index: Any) -> None:
        """Compares."""
        self._rows.read()

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        for written in self._rows.written():
            yield from t728_reading_writes.check(written, self.scene.step, self.scene.recorder.rank)

    def let_go(self) -> None:
        """Takes its trace function away."""
        self._rows.let_go()
