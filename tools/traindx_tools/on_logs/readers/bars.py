"""Progress bars draw the same state again and again: of all drawings the last one counts."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace

from traindx_tools.on_logs.readers.names import TEST, VALIDATION
from traindx_tools.on_logs.readers.recorder import Columns, Key

_PACES = frozenset({"throughput", "step_time", "tokens_per_second"})
_DRAWN = re.compile(r"\d%(?:\||:? ?[━╸╺─]{5})")
"""100%|####|, and 100% ━━━━ as newer programs draw it."""


def is_drawn(text: str) -> bool:
    """Whether a line ends with a bar that tells its share in percent."""
    return "%" in text and _DRAWN.search(text) is not None


FITTED = re.compile(r"\s*\d+/\d+ - \d+m?s - ")
"""How Keras writes an epoch, or an evaluation, in one line (`verbose=2`)."""
ENDS_IN_NAME = re.compile(r"[A-Za-z_]\w*:\s*$")
NUMBER_ALONE = re.compile(r"\s+[-+]?\d[\d.e+-]*(?:\s|$)")
"""The name at the end of a bar whose value has no room but in the next line, and such a line."""
_BEHIND = re.compile(r"\d+/\d+ \[[^\]]*<[^\]]*\]")
"""The end of a tqdm bar: what it is given to show stands inside the brackets."""


def behind_bar(text: str) -> str:
    """What another writer has put behind a tqdm bar on its line; "" without a bar."""
    ends = [m.end() for m in _BEHIND.finditer(text)]
    return text[ends[-1]:].strip() if ends else ""


def without_glued(parts: list[str]) -> list[str]:
    """Text and numbers of a line, without what another writer has put right behind a tqdm bar: "3.1it/s]Saved 5 files".

    What a program shows behind its own bar is parted from it by a blank.
    """
    text = "".join(parts)
    ends = [m.end() for m in _BEHIND.finditer(text)] if "%|" in text else []
    if not ends or not text[ends[-1]:ends[-1] + 1].strip():
        return parts
    kept, left = [], ends[-1]
    for part in parts:
        kept.append(part[:left])
        left -= len(part)
        if left <= 0:
            break
    return kept


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


def _alike(before: float | None, now: float) -> bool:
    return before is not None and (before == now or (math.isnan(before) and math.isnan(now)))


def _updated(held: Record, record: Record) -> Record:
    """A drawing with what a later one of the same state shows."""
    numbers = {id(c): (c, n) for c, n in zip(held.columns, held.numbers, strict=False)}
    numbers.update({id(c): (c, n) for c, n in zip(record.columns, record.numbers, strict=False)})
    return replace(record, columns=[c for c, _ in numbers.values()], numbers=[n for _, n in numbers.values()])


@dataclass
class Bars:
    """Holds a bar's last drawing back until the bar has moved on.

    A tqdm bar shows the values of the moment: the last drawing at each count is kept. A Keras bar shows means over the
    epoch so far: only the last drawing of the epoch is kept. So do the meters of an evaluation, a line now and then,
    and a row of a table that a bar ends ("row"). Behind a tqdm bar the scores of the last evaluation stand until the
    next one (Lightning): drawings of an epoch that is not full repeat them, and are no evaluations. Its bar at 0 shows
    what was known at the end of the epoch before. What has no room beside a bar stands in the lines below (rich).
    """

    redrawn: int = 0
    """Drawings of bars with means that a later one of the same epoch replaced."""
    _full: dict[tuple[float, float, tuple[int, ...]], str] = field(default_factory=dict)
    """What the full bar of an epoch showed."""
    _held: Record | None = None
    _kind: str = ""
    _held_out: set[int] = field(default_factory=set)
    """Identities of the columns that an evaluation fills."""
    _shown: dict[int, float] = field(default_factory=dict)
    """What stood in each of them last."""
    _paces: set[int] = field(default_factory=set)
    """Identities of the columns that say how fast the bar moves."""
    _beside: frozenset[int] = frozenset()
    """Identities of the columns that stood beside the bar that is held, not below it."""
    _drawn_at: tuple[float, float] = (math.nan, math.nan)
    """Where that bar itself said that it stood."""
    _last: Record | None = None
    """The last drawing of a tqdm bar."""

    def known(self, key: Key, columns: Columns | None) -> Columns | None:
        """The columns of a series as they are given, with their group and sort kept in mind."""
        if key.group in (VALIDATION, TEST) and columns is not None:
            self._held_out.add(id(columns))
        if (key.metric or key.name.canonical) in _PACES:
            self._paces.add(id(columns))
        return columns

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
        told, record = record, self._before_first(record) if kind == "tqdm" else record
        again = self._held is not None and self._redraws(self._held, record, kind)
        self.redrawn += again and kind == "keras"
        done = [] if self._held is None or again or self._drawn_before(self._held) else [self._released(self._held)]
        if kind == "tqdm":
            self._drawn_at = told.step, told.epoch
            self._last, self._beside = record, frozenset(map(id, record.columns)) - self._paces
            record = _updated(self._held, record) if again and self._held is not None else record
        self._held, self._kind = (record, kind) if kind else (None, "")
        return done if kind else [*done, record]

    def below(self, record: Record) -> list[Record]:
        """The records that are complete now, of which one stands below a bar that was just drawn, at its place."""
        held = self._held
        if held is None or self._kind != "tqdm" or self._drawn_at != (record.step, record.epoch):
            return self.take(record, "tqdm")
        now = _updated(held, record)
        self._held = replace(held, columns=now.columns, numbers=now.numbers)
        return []

    def _before_first(self, record: Record) -> Record:
        """A drawing of a bar at 0 that shows the training as the one before it did: at the end of the epoch before, but
        for how fast it moved. A program that shows each batch before it counts it has moved on."""
        last = self._last
        if last is None or record.step != 0.0 or not 0 < last.step <= last.total == record.total or (
                record.epoch - last.epoch not in (0.0, 1.0)):
            return record
        before = {id(c): n for c, n in zip(last.columns, last.numbers, strict=False)}
        trained = [(id(c), n) for c, n in zip(record.columns, record.numbers, strict=False)
                   if id(c) not in self._held_out | self._paces]
        if not all(_alike(before.get(c), n) for c, n in trained):
            return record
        kept = [(c, n) for c, n in zip(record.columns, record.numbers, strict=False) if id(c) not in self._paces]
        return replace(record, step=last.total, epoch=last.epoch, columns=[c for c, _ in kept],
                       numbers=[n for _, n in kept])

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
        return same_count and self._beside <= {id(c) for c in record.columns}

    def _drawn_before(self, held: Record) -> bool:
        """Whether this is the full bar of an epoch, above the one that moves, that is drawn again and again as it was.

        A bar that has moved since is another one: a run that was started again. Zeros before the first batch are what
        a bar shows that was given nothing yet.
        """
        if self._kind != "tqdm":
            return False
        if held.step == 0.0 and not math.isnan(held.total) and not any(held.numbers):
            return True
        if math.isnan(held.epoch):
            return False
        told = repr([n for c, n in zip(held.columns, held.numbers, strict=False) if id(c) not in self._paces])
        bar = (held.epoch, held.total, tuple(map(id, held.columns)))
        if held.step != held.total:
            self._full.pop(bar, None)
            return False
        before, self._full[bar] = self._full.get(bar), told
        return before == told

    def _released(self, held: Record) -> Record:
        """What counts the batches of an evaluation says nothing of where in the run it stands."""
        if self._kind == "meter":
            return replace(held, step=math.nan, total=math.nan, slot=-1)
        return self._without_repeats(held) if self._kind == "tqdm" and self._held_out else held

    def _without_repeats(self, held: Record) -> Record:
        """Without held-out scores that all stood there before, within an epoch: it is the same evaluation."""
        now = {id(c): n for c, n in zip(held.columns, held.numbers, strict=False) if id(c) in self._held_out}
        before = [_alike(self._shown[c], n) for c, n in now.items() if c in self._shown]
        same = bool(before) and all(before)
        self._shown.update(now)
        if not same or math.isnan(held.epoch) or not held.step < held.total:
            return held
        kept = [(c, n) for c, n in zip(held.columns, held.numbers, strict=False) if id(c) not in now]
        return replace(held, columns=[c for c, _ in kept], numbers=[n for _, n in kept]) if kept else held

    def flush(self) -> list[Record]:
        """What is still held back."""
        held, self._held = self._held, None
        return [] if held is None or self._drawn_before(held) else [self._released(held)]
