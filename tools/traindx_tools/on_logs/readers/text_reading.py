"""One log of free text, line by line: the shapes of its lines are learned, and the records that they hold."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np

from traindx_tools.artifact import Artifact
from traindx_tools.on_logs.readers import line_tokens, named_digits, notes
from traindx_tools.on_logs.readers.bars import ENDS_IN_NAME, FITTED, NUMBER_ALONE, Bars, Record, behind_bar
from traindx_tools.on_logs.readers.counters import Counters, Settled, settle
from traindx_tools.on_logs.readers.launched import Launched
from traindx_tools.on_logs.readers.line_forms import LineForm, told_by
from traindx_tools.on_logs.readers.line_plans import NOTHING, Plan
from traindx_tools.on_logs.readers.line_shapes import Shape, announced_by, writer_before
from traindx_tools.on_logs.readers.names import TEST, TRAIN, VALIDATION, identify
from traindx_tools.on_logs.readers.numbers import ratio, scaled
from traindx_tools.on_logs.readers.one_counter import BY, MOST_COUNTERS, without_twins
from traindx_tools.on_logs.readers.pairs import EVALUATED
from traindx_tools.on_logs.readers.prefixes import Prefix
from traindx_tools.on_logs.readers.printed_tables import PrintedTables, Row
from traindx_tools.on_logs.readers.recorder import Columns, Key, Recorder
from traindx_tools.on_logs.readers.understanding import MAX_SHAPE_LENGTH, MAX_SHAPES, Understanding
from traindx_tools.on_logs.readers.unread import Unread, is_read_elsewhere, loses_a_fraction
from traindx_tools.on_logs.run import Note, Run

SLOTS = {TRAIN: 0, VALIDATION: 10, TEST: 20}
"""Each group has counters of its own: an evaluation counts its own batches."""
_TABLE_SLOT = 9
"""Marks steps that a column of a printed table gave."""
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_BARS = ("|", "│", "┃", "║")
_TRACEBACK = "Traceback (most recent call last)"


@dataclass
class TextReading:
    """The state of reading one text, line by line."""

    source: str
    recorder: Recorder = field(init=False)
    counters: Counters = field(default_factory=Counters)
    notes: list[Note] = field(default_factory=list)
    _noted: Counter[str] = field(default_factory=Counter)
    world_size: int | None = None
    planned: float = math.nan
    tentative: set[Key] = field(default_factory=set)
    firm: set[Key] = field(default_factory=set)
    understanding: Understanding = field(default_factory=Understanding)
    _shapes: dict[bytes, Shape] = field(default_factory=dict)
    _given_up: set[int] = field(default_factory=set)
    """Lines that came to nothing, as very many like them did, and that were met once."""
    _bars: Bars = field(default_factory=Bars)
    _tables: PrintedTables = field(default_factory=PrintedTables)
    _in_traceback: bool = False
    epoch: float = math.nan
    trained: float = math.nan
    """The epoch that the last line of the training itself stated."""
    step: float = math.nan
    head: tuple[int, float] = (-1, math.nan)
    """Of the heading that stated the step: how surely it counts, and its planned end."""
    above: float = math.nan
    """The step of the last line that is not indented: indented lines below it belong to it."""
    _bar_total: float = math.nan
    _drawn: tuple[int, float, float, float, int] = (-1, math.nan, math.nan, math.nan, -1)
    """Of the last bar that told its epoch: its line, or that of the last line below it; step, end, epoch, sureness."""
    _announced: tuple[str, int] = ("", -1)
    """The group that a heading told, and its line, or that of the last line below it."""
    _fitted: tuple[float, float] = (math.nan, math.nan)
    """The epoch of the last bar of Keras below a heading, and how many batches its training has."""
    _open: str = ""
    """The name at the end of that bar whose value has no room but in the next line."""
    _words: dict[str, str] = field(default_factory=dict)
    """What counts records."""
    _ranks: set[int] = field(default_factory=set)
    launched: Launched = field(default_factory=Launched)
    forms: tuple[LineForm, ...] = ()
    """What a person says of the shapes of lines."""
    formed: set[str] = field(default_factory=set)
    """Which of them a line had."""
    unread: Unread = field(default_factory=Unread)
    lines: int = 0
    """Lines that are not empty."""

    def __post_init__(self) -> None:
        self.understanding.gives_up = not self.forms
        self.recorder = Recorder(self.source, beside=(self.counters.slot, self.counters.total))

    def line(self, number: int, text: str) -> None:
        """Reads one line."""
        self.lines += 1
        if self._open:
            text, self._open = f" {self._open} {text.lstrip()}" if NUMBER_ALONE.match(text) else text, ""
        mask = text.encode("utf-8", "surrogatepass").translate(_DIGITS)
        shape = self._shapes.get(mask)
        if shape is not None and shape.named and (own := named_digits.digits(text, shape.named)) != shape.digits:
            mask = named_digits.key(mask, own)
            shape = self._shapes.get(mask)
        if shape is None:
            shape = self.learn(text, mask)
        elif shape.silent and not self._in_traceback and not self._tables.open:
            if shape.unread:
                self.unread.add(1, number, text)
            return
        elif shape.ready and not self._in_traceback and not self._tables.open:
            self._apply(shape, text, number, *shape.prefix.time_and_rank(text))
            return
        self.whole(shape, number, text)

    def known(self, mask: bytes) -> Shape | None:
        """What is known of lines with this mask."""
        return self._shapes.get(mask)

    @property
    def calm(self) -> bool:
        """Whether nothing is under way that the lines before have begun: a traceback, a table, a bar."""
        return not self._in_traceback and not self._tables.open and self._bars.idle and not (
            self._open or self._announced[0])

    def columns_of(self, shape: Shape) -> list[Columns | None]:
        """Where the values of lines of a shape without a rank go."""
        return shape.columns.get(None) or self._columns(shape, None)

    def whole(self, shape: Shape, number: int, text: str) -> None:
        """Reads a line in full: it may begin or end what goes over several lines."""
        prefix = shape.prefix.same_shape(text)
        body = text[prefix.end:] if prefix.end else text
        if self._skip_traceback(body, shape.traceback) or not body:
            return
        if self._tables.open or not shape.plan.fields:
            in_table, row = self._tables.line(body, len(shape.spans))
            if row is not None:
                self._take_row(row, number, prefix)
            if in_table:
                return
        self._announced = (shape.announces, number) if shape.announces else self._announced
        if shape.note:
            self._note(shape.note, number, body, prefix)
        if shape.plan is not NOTHING:
            self._apply(shape, text, number, prefix.time, prefix.rank)
        if shape.unread:
            self.unread.add(1, number, text)

    def _skip_traceback(self, body: str, starts: bool) -> bool:
        if starts:
            self._in_traceback = True
        elif self._in_traceback and body and not body[0].isspace():
            self._in_traceback = False
            return True
        return self._in_traceback

    def learn(self, text: str, mask: bytes, times: int = 1) -> Shape:
        """Works out the shape of a line that is met for the first time, so many times. What was given up is remembered
        only where it comes again."""
        prefix = self.launched.prefix(text)
        body = text[prefix.end:]
        parts = line_tokens.split(body)
        spans, at = [], prefix.end
        for i, part in enumerate(parts):
            if i % 2:
                spans.append((at, at + len(part)))
            at += len(part)
        plan, note, given_up = self.understanding.of(parts, body, prefix)
        for form, told in told_by(self.forms, text, prefix.end):
            self.formed.add(form.text)
            plan, note, spans = form.plan, None, told
        shape = Shape(prefix, plan, spans, note, body[:1] in (" ", "\t"), body.startswith(_TRACEBACK),
                       body[:1] in _BARS, announces=announced_by(body), commas=any("," in text[a:b] for a, b in spans),
                       divided=any(f.over is not None for f in plan.fields))
        shape.fitting = plan.epoch is None and (plan.bar == "keras" or FITTED.match(body) is not None)
        shape.writer = prefix.logger or writer_before(body)
        shape.named = named_digits.positions(text, spans, prefix.end, shape.keys)
        shape.digits = named_digits.digits(text, shape.named)
        heading = plan.header and not loses_a_fraction(plan, parts)
        used = plan.fields or heading or plan.bar or note or shape.traceback or shape.sectioned
        self.unread.of_record(plan, parts, body)
        shape.unread = not used and bool(spans) and not is_read_elsewhere(body, prefix.level)
        if given_up and times == 1 and hash(mask) not in self._given_up:
            if len(self._given_up) < MAX_SHAPES:
                self._given_up.add(hash(mask))
        elif len(self._shapes) < MAX_SHAPES and len(mask) <= MAX_SHAPE_LENGTH:
            self._shapes[mask] = shape
        return shape

    def _note(self, kind: str, number: int, body: str, prefix: Prefix) -> None:
        self._noted[kind] += 1
        if self._noted[kind] <= notes.MAX_NOTES:
            text = (behind_bar(body) or body).strip()[:notes.MAX_TEXT]
            self.notes.append(Note(kind, text, self.source, number, notes.values_of(body),
                                   prefix.rank))
        self.world_size = self.world_size or notes.world_size(body)
        planned = notes.planned_steps(body)
        self.planned = self.planned if planned is None else planned

    def _apply(self, shape: Shape, text: str, number: int, time: float | None, rank: int | None) -> None:
        plan, spans = shape.plan, shape.spans
        cut = shape.pick(text)
        step, total, epoch, epoch_total, *numbers = [
            float(c.replace(",", "")) if c else math.nan for c in cut] if shape.commas else [
            float(c) if c else math.nan for c in cut]
        if shape.scales:
            step, total, epoch, epoch_total = (scaled(c, s) for c, s in zip(
                (step, total, epoch, epoch_total), shape.scales, strict=True))
        slot, below = -1, False
        if epoch_total == epoch_total:
            self.counters.epoch_total = epoch_total
        if plan.bar == "tqdm" and plan.step is not None and plan.epoch is not None:
            self._drawn = number, step, total, epoch, plan.step.sureness
            self._open = text.split()[-1] if ENDS_IN_NAME.search(text) else ""
        if not plan.fields:
            self._place(plan, step, total, epoch)
            return
        if shape.fitting and self._is_of_evaluation(shape, total):
            shape = shape.in_group(TEST)
        elif self._announced[0] and self._is_announced(shape, number):
            shape = shape.in_group(self._announced[0])
        if plan.epoch is None:
            epoch = self.trained if plan.bar == "meter" and math.isnan(self.epoch) else self.epoch
        elif shape.keys[0].group == TRAIN:
            self.trained = epoch
        if plan.epoch is not None and not math.isnan(self.epoch):
            self.epoch = epoch
        if plan.step is not None:
            slot = plan.step.sureness + SLOTS[shape.keys[0].group]
            if not shape.indented:
                self.step, self.above = math.nan, step if shape.keys[0].group == TRAIN else math.nan
        elif not math.isnan(self.step):
            step, slot, total = self.step, under(self.head[0], shape.keys[0].group), self.head[1]
        elif below := self._is_below_bar(shape, number):
            step, total, epoch, slot = *self._drawn[1:4], under(self._drawn[4], shape.keys[0].group)
            self._drawn = number, *self._drawn[1:]
        elif shape.indented and plan.epoch is None:
            step, slot = self.above if shape.keys[0].group == TRAIN else math.nan, -1
        if plan.rank is not None:
            rank = int(_count(text, spans, plan.rank))
        if shape.factors:
            numbers = [n * f for n, f in zip(numbers, shape.factors, strict=False)]
        if shape.divided:
            numbers = [n if f.over is None else ratio(n, _count(text, spans, f.over))
                       for n, f in zip(numbers, plan.fields, strict=False)]
        time = math.nan if time is None else time
        columns = shape.columns.get(rank) or self._columns(shape, rank)
        if shape.plain and self._bars.idle and not below:
            self._append(number, step, total, slot, epoch, time, columns, numbers)
            return
        record = Record(number, step, total, slot, epoch, time, columns, numbers)
        for ready in self._bars.below(record) if below else self._bars.take(record, plan.bar):
            self._add(ready)

    def _is_announced(self, shape: Shape, number: int) -> bool:
        """Whether a line is indented right below one that says on which data it was measured, and says nothing else."""
        group, line = self._announced
        mine = shape.indented and number - line <= 1 and shape.plan.step is None and shape.plan.epoch is None
        own = any(identify(k.original).group for k in shape.keys)
        self._announced = (group, number) if mine else ("", -1)
        return mine and not own and any(k.name.canonical in EVALUATED for k in shape.keys)

    def _is_of_evaluation(self, shape: Shape, total: float) -> bool:
        """Whether a line of Keras below the heading of an epoch counts other batches than the training of it."""
        if math.isnan(self.epoch):
            return False
        if self._fitted[0] != self.epoch:
            self._fitted = self.epoch, total
        return self._fitted[1] != total and not math.isnan(total) and all(k.group == TRAIN for k in shape.keys)

    def _is_below_bar(self, shape: Shape, number: int) -> bool:
        """Whether a line goes on with what a bar right above it shows: rich writes there what has no room beside it."""
        return (shape.indented and shape.plan.epoch is None and not shape.plan.bar
                and 0 <= number - self._drawn[0] <= 1)

    def _place(self, plan: Plan, step: float, total: float, epoch: float) -> None:
        """A line without metrics: a heading that says where the next ones stand, or a bare bar."""
        if plan.header:
            self._flush()
            self.epoch, self._fitted = epoch if plan.epoch else self.epoch, (math.nan, math.nan)
            self.step, self.above = step, math.nan
            self.head = (-1 if plan.step is None else plan.step.sureness, total)
        elif plan.bar == "tqdm" and plan.plain and not math.isnan(total) and not plan.rounded:
            self._bar_total = total if math.isnan(self._bar_total) else max(total, self._bar_total)

    def _columns(self, shape: Shape, rank: int | None) -> list[Columns | None]:
        columns = shape.columns.get(rank)
        if columns is None:
            if rank is not None:
                self._ranks.add(rank)
            counter = self._counter(shape)
            keys = [replace(k, rank=rank, counter=counter) for k in shape.keys]
            for key, planned in zip(keys, shape.plan.fields, strict=False):
                (self.tentative if planned.tentative else self.firm).add(replace(key, counter=""))
            columns = shape.columns[rank] = [self._bars.known(k, self.recorder.columns(k)) for k in keys]
            shape.plain = not shape.plan.bar and len({id(c) for c in columns}) == len(columns)
        return columns

    def _counter(self, shape: Shape) -> str:
        """What counts the records of a shape, of few counters in all: the word, and who writes it."""
        step = shape.plan.step
        if step is None:
            return ""
        name = f"{step.word or step.sureness}{BY if shape.writer else ''}{shape.writer}"
        return self._words.setdefault(name, name) if name in self._words or len(self._words) < MOST_COUNTERS else ""

    def _take_row(self, row: Row, number: int, prefix: Prefix) -> None:
        if not math.isnan(row.epoch_total):
            self.counters.epoch_total = row.epoch_total
        keys = [Key(name, identify(name).group or TRAIN, prefix.rank) for name, _ in row.values]
        self.firm.update(keys)
        time = math.nan if prefix.time is None else prefix.time
        epoch = self.epoch if math.isnan(row.epoch) else row.epoch
        slot = -1 if math.isnan(row.step) else _TABLE_SLOT
        record = Record(number, row.step, row.total, slot, epoch, time, [self.recorder.columns(k) for k in keys],
                        [v for _, v in row.values])
        for ready in self._bars.take(record, "row" if row.drawn else ""):
            self._add(ready)

    def _flush(self) -> None:
        for ready in self._bars.flush():
            self._add(ready)

    def _add(self, r: Record) -> None:
        for columns, numbers in r.once_each():
            self._append(r.line, r.step, r.total, r.slot, r.epoch, r.time, columns, numbers)

    def _append(self, line: int, step: float, total: float, slot: int, epoch: float, time: float,
                columns: list[Columns | None], numbers: list[float]) -> None:
        if self.recorder.append(line, columns, numbers, step, epoch, time):
            self.counters.slot.append(slot)
            self.counters.total.append(total)

    def finish(self, note: str) -> Run:
        """The run that the lines tell of."""
        row = self._tables.finish()
        if row is not None:
            self._take_row(row, self.recorder.last_line, Prefix())
        self._flush()
        self.recorder.even_out()
        settled = settle(self.recorder.step.told(), self.recorder.epoch.told(), self.counters)
        self.recorder.step.put(0, settled.step)
        self.recorder.count_apart()
        self._forget_remarks()
        planned, unit = self._planned(settled)
        told_size = self.world_size or self.understanding.world_size
        size = told_size or (max(self._ranks) + 1 if len(self._ranks) > 1 else None)
        missed = self.unread.note(self.lines, found=len(self.recorder) > 0)
        series, twins = without_twins(self.recorder.series())
        told = (missed, settled.remark, note, twins, self.recorder.remark, self._bars.remark, self.unread.of_records)
        dialects = self.understanding.dialects
        form = max(dialects, key=lambda d: (d != "tqdm", dialects[d])) if dialects else "free_text"
        lost = self.unread.lost(self.lines, self.recorder.counts(), self.launched.prefix)
        return Run(series=series, notes=tuple(self.notes), planned_steps=planned, planned_unit=unit,
                   world_size=size, artifacts=(Artifact(
                       self.source, form, rows=self.recorder.rows, note="; ".join(filter(None, told)),
                       unused=self.unread.count + len(self.recorder) - self.recorder.rows, lost=lost),))

    def _forget_remarks(self) -> None:
        """Drops names that came once without a counter, or that are unknown and came once among many records."""
        counts = self.recorder.counts()
        alike: dict[Key, list[Key]] = {}
        for key in counts:
            alike.setdefault(replace(key, counter=""), []).append(key)
        many = len(self.recorder) >= 4
        again = {k.name.canonical for k, keys in alike.items() if sum(counts[one] for one in keys) > 1}
        for key, keys in alike.items():
            count = sum(counts[one] for one in keys)
            unknown = not key.name.known and (key.metric or "time/").startswith("time/")
            lonely = unknown and count == 1 and many and key.name.canonical not in again
            if (key in self.tentative and key not in self.firm and count < 3) or lonely:
                self.recorder.forget(keys)

    def _planned(self, settled: Settled) -> tuple[float | None, str]:
        """How many steps or epochs the log says there will be."""
        if not math.isnan(self.planned):
            return self.planned, "step"
        slots, totals = self.counters.slot.told(), self.counters.total.told()
        counted = np.isfinite(settled.step) & (slots >= 0) if len(slots) else np.zeros(0, bool)
        main = int(np.bincount(slots[counted]).argmax()) if counted.any() else -1
        known = totals[counted & (slots == main) & np.isfinite(totals)] if main >= 0 else totals[:0]
        epochs = self.counters.epoch_total
        if len(known) and main not in settled.within_epoch:
            return float(known[-1]), "step"
        if len(known) and not math.isnan(epochs):
            return float(known[-1]) * epochs, "step"
        if not math.isnan(epochs):
            return epochs, "epoch"
        bar = self._bar_total if "hf_trainer_log" in self.understanding.dialects and self._bar_total > 0 else None
        return bar, "step"


def under(sureness: int, group: str) -> int:
    """The slot of records of a group below a heading."""
    return sureness if sureness < 0 else sureness + SLOTS[group]


def _count(text: str, spans: list[tuple[int, int]], token: int) -> float:
    start, end = spans[token]
    return float(text[start:end].replace(",", ""))
