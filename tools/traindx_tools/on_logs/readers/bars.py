"""Progress bars draw the same state again and again: of all drawings the last one counts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from traindx_tools.on_logs.readers.recorder import Columns


@dataclass(frozen=True)
class Record:
    """Values that stand together in a log, and where. `slot` says which counter gave the step, -1 for none."""

    line: int
    step: float
    total: float
    slot: int
    epoch: float
    time: float
    columns: list[Columns | None]
    numbers: list[float]

    def once_each(self) -> list[tuple[list[Columns | None], list[float]]]:
        """Splits a record in which a metric stands twice ("reward before 0.51 after 0.62")."""
        rest = list(zip(self.columns, self.numbers, strict=False))
        if len({id(c) for c in self.columns}) == len(self.columns):
            return [(self.columns, self.numbers)]
        parts: list[tuple[list[Columns | None], list[float]]] = []
        while rest:
            seen: dict[int, tuple[Columns | None, float]] = {}
            again = []
            for column, number in rest:
                if id(column) in seen:
                    again.append((column, number))
                else:
                    seen[id(column)] = (column, number)
            parts.append(([c for c, _ in seen.values()], [n for _, n in seen.values()]))
            rest = again
        return parts


@dataclass
class Bars:
    """Holds a bar's last drawing back until the bar has moved on.

    A tqdm bar shows the values of the moment: the last drawing at each count is kept. A Keras bar shows means over the
    epoch so far: only the last drawing of the epoch is kept. So do the meters of an evaluation, a line now and then,
    and a row of a table that a bar ends ("row").
    """

    redrawn: int = 0
    """Drawings of bars with means that a later one of the same epoch replaced."""
    _held: Record | None = None
    _kind: str = ""

    @property
    def remark(self) -> str:
        """What a person is told of drawings that are no records, "" where there are none."""
        return (f"{self.redrawn:,} drawings of its bar are no rows: they hold means over the epoch so far, and the "
                "last of each epoch has those of the whole") if self.redrawn else ""

    @property
    def idle(self) -> bool:
        """Whether no bar is being drawn."""
        return self._held is None

    def take(self, record: Record, kind: str) -> list[Record]:
        """The records that are complete now. `kind`: "tqdm", "keras", "meter", "row"; "" for a line without a bar."""
        if not kind and self._held is None:
            return [record]
        again = self._held is not None and self._redraws(self._held, record, kind)
        self.redrawn += again and kind == "keras"
        done = [] if self._held is None or again else [self._released(self._held)]
        self._held, self._kind = (record, kind) if kind else (None, "")
        return done if kind else [*done, record]

    def _redraws(self, held: Record, record: Record, kind: str) -> bool:
        if kind != self._kind or not (record.total == held.total or math.isnan(held.total)):
            return False
        if kind == "tqdm" and record.epoch != held.epoch and not (math.isnan(record.epoch) or math.isnan(held.epoch)):
            return False  # the full bar of the next epoch
        same_count = record.step == held.step or (math.isnan(record.step) and math.isnan(held.step))
        if kind == "row":
            return same_count and record.epoch == held.epoch
        if kind in ("keras", "meter"):
            return same_count or (record.step > held.step and held.step < held.total)
        return same_count and {id(c) for c in held.columns} <= {id(c) for c in record.columns}

    def _released(self, held: Record) -> Record:
        """What counts the batches of an evaluation says nothing of where in the run it stands."""
        return replace(held, step=math.nan, total=math.nan, slot=-1) if self._kind == "meter" else held

    def flush(self) -> list[Record]:
        """What is still held back."""
        held, self._held = self._held, None
        return [] if held is None else [self._released(held)]
