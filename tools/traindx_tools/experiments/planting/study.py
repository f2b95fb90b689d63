"""Makes the runs: one as it is, one for each column that the target may be made of, one with whole rows changed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from traindx_tools.errors import UnreadableInput
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.place import Place, Prepared
from traindx_tools.experiments.planting.choosing import plantable, rows_to_plant, swaps_for, targets_among
from traindx_tools.experiments.planting.judging import FEWEST, Compared, Together, apart, compared, together
from traindx_tools.experiments.planting.tables import READABLE, Column, Swap, Table, changed, tables
from traindx_tools.live.batch_rows import MOST_ROWS, PROBE, TRAINED, BatchRows, path_for, read
from traindx_tools.live.reading import LiveRun, read_folder
from traindx_tools.rows.book import SUMS
from traindx_tools.scope.tree import read_text

EPOCHS = 1.5
"""Times the rows of the largest table that trained rows are recorded: an epoch, whatever its part of them is."""
FEWEST_TRAINED = 1_000
UNRECORDED, MOST_UNRECORDED = frozenset({".parquet"}), 20
"""Files that are read by libraries that open them in C."""
NO_TABLE = "none of the files that the program reads has a form whose values can be changed"
UNSEEN = "the program's batches were not seen (torch: a model, a loss and its rows)"
MOST_CANDIDATES = 3
"""Columns that are tried as the one that the target is made of."""
ENDED = 240.0
"""Seconds that one run may take."""
SEEDED = Change("seed", {"by": 0})
"""Sets seeds where the program sets none, so that two runs draw the same batches."""
SEEDS = (11, 12, 13)
Say = Callable[[str], None]


@dataclass(frozen=True)
class Reached:
    """What became of the values of one column. `column`: the one that the target is made of."""

    table: Table
    column: Column
    planted: int
    """Values that were changed."""
    seen: Together
    names: tuple[str, ...] = ()
    """Of the columns of the input that changed with their own target; numbers in brackets where nothing names them."""
    place: tuple[str, int] | None = None
    """Where the program makes the first of them."""


@dataclass(frozen=True)
class Parted:
    """Whole rows were changed: rows of batches whose input changed, whose target did, and both."""

    table: Table
    planted: int
    inputs: int
    seen: Together


@dataclass(frozen=True)
class Study:
    """What the runs showed. `why`: why nothing is known, "" where something is."""

    runs: int
    seconds: float
    reached: Reached | None = None
    parted: Parted | None = None
    why: str = ""

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        told: dict[str, object] = {"runs": self.runs, "seconds": round(self.seconds, 2), "why": self.why}
        if self.reached is not None:
            r = self.reached
            told["target"] = {"file": r.column.file, "column": r.column.name, "planted": r.planted,
                              "targets_changed": r.seen.targets, "inputs_changed_too": r.seen.both,
                              "other_inputs_changed": round(r.seen.base, 6), "inputs": list(r.names),
                              "leaks": r.seen.leaks}
        if self.parted is not None:
            p = self.parted
            told["rows"] = {"files": list(p.table.files), "planted": p.planted, "inputs_changed": p.inputs,
                            "targets_changed": p.seen.targets, "both": p.seen.both}
        return told


@dataclass
class Planting:
    """One study. `files`: data files that the program reads, by their path in the workspace; None: the run tells."""

    place: Place
    command: str
    files: Sequence[str] | None
    seconds: float
    """For all runs together."""
    say: Say = lambda _: None
    runs: int = 0
    took: float = 0.0
    untold: str = ""
    """Why the last pair of runs said nothing."""
    _read_by_the_run: tuple[str, ...] = ()
    _failed: str = ""
    """How the last run ended whose batches were not seen, where it failed."""

    def study(self) -> Study:
        """Makes the runs until both questions are answered, or cannot be."""
        found = tables(self.files, self.place.workspace) if self.files is not None else None
        if found is not None and not found:
            return self._ended(NO_TABLE)
        control = self._run({}, found[0].rows if found else MOST_ROWS)
        if control is None:
            return self._ended(self._failed or UNSEEN)
        if found is None:
            found = tables(self._read_by_the_run, self.place.workspace)
            if not found:
                return self._ended(NO_TABLE)
        targets = control.of_role(TRAINED).targets
        if not len(targets) or not np.isfinite(targets[:, 0]).any():
            return self._ended("the loss was given no target that has fewer values than its row")
        reached = self._target(control, found)
        if reached is None:
            return self._ended(self.untold or "no column that was tried changes the targets")
        parted = None
        if not reached.seen.leaks and reached.seen.base == 0 and not _in_time(reached):
            parted = self._whole_rows(control, reached)
        return self._ended("", reached, parted)

    def _ended(self, why: str, reached: Reached | None = None, parted: Parted | None = None) -> Study:
        return Study(self.runs, self.took, reached, parted, why)

    def _target(self, control: BatchRows, found: Sequence[Table]) -> Reached | None:
        """The column that the target is made of, and whether it reaches the inputs of its own rows."""
        seen = control.of_role(TRAINED).targets[:, 0]
        candidates = [(t, c) for t in found for c in targets_among(t, seen)]
        for table, column in candidates[:MOST_CANDIDATES]:
            swap = swaps_for(column, rows_to_plant(table, SEEDS[0]), SEEDS[0])
            told = self._compared(control, {column.file: {column.name: swap}}, table,
                                  f"{len(swap)} values of {column.name} in {column.file}")
            if told is None or told.why:
                spent = "the time was used up" if self.took >= self.seconds else ""
                self.untold = told.why if told is not None else spent
                continue
            both = together(told)
            if both.targets >= FEWEST:
                names, place = self._names(control, both)
                return Reached(table, column, len(swap), both, names, place)
        return None

    def _whole_rows(self, control: BatchRows, reached: Reached) -> Parted | None:
        """Rows changed in all columns; in every other one where that changes the order of the rows."""
        table, target = reached.table, reached.column
        rows = rows_to_plant(table, SEEDS[1])
        others = [c for c in table.columns if c is not target and plantable(c)]
        for chosen in (others, others[::2], others[1::2]):
            if not chosen:
                continue
            swaps: dict[str, dict[str, Swap]] = {}
            for number, column in enumerate([target, *chosen]):
                swaps.setdefault(column.file, {})[column.name] = swaps_for(column, rows, SEEDS[2] + number)
            what = "whole rows" if chosen is others else f"rows in {len(chosen) + 1} columns"
            told = self._compared(control, swaps, table, f"{len(rows)} {what} of {', '.join(table.files)}")
            if told is not None and not told.why:
                parted = Parted(table, len(rows), int(told.rows.sum()), together(told))
                return parted if apart(told) else None
        return None

    def _compared(self, control: BatchRows, swaps: Mapping[str, Mapping[str, Swap]], table: Table,
                  what: str) -> Compared | None:
        self.say(f"planted: {what}")
        try:
            made = {file: changed(file, self.place.workspace, of) for file, of in swaps.items()}
        except (OSError, ValueError, KeyError, IndexError) as error:
            self.say(f"not planted: {error}")
            return None
        rows = self._run(made, table.rows)
        return compared(control, rows, TRAINED) if rows is not None else None

    def _run(self, files: Mapping[str, bytes | None], rows: int) -> BatchRows | None:
        left = self.seconds - self.took
        if left <= 0:
            return None
        most = int(min(MOST_ROWS, max(FEWEST_TRAINED, EPOCHS * rows)))
        prepared = Prepared(self.command, files=files, inside=(SEEDED,), probes=(PROBE,), options={"batch_rows": most})
        trace = self.place.run(prepared, lambda t: path_for(t.folder / "live", 0).is_file(),
                               seconds=min(ENDED, left))
        self.runs += 1
        self.took += trace.seconds
        if not files and self.files is None:
            self._read_by_the_run = below(read_folder(trace.folder / "live"), self.place.workspace)
        try:
            return read(path_for(trace.folder / "live", 0))
        except UnreadableInput:
            self._failed = f"the run as it is failed: {trace.broke}" if trace.broke else ""
            return None

    def _names(self, control: BatchRows, both: Together) -> tuple[tuple[str, ...], tuple[str, int] | None]:
        if not both.columns or control.inputs.shape[1] - SUMS != control.per_row:
            return (), None
        if len(control.names) != control.per_row:
            return tuple(f"[{i}]" for i in both.columns), None
        names = tuple(control.names[i] for i in both.columns)
        return names, next((p for n in names for p in made_at(n, self.place.workspace)), None)


def below(live: LiveRun, workspace: Path) -> tuple[str, ...]:
    """The data files below the workspace that a recorded run read and whose values can be changed.

    What a library opens in C is not recorded (Parquet): where nothing is, the files there that end so are taken.
    """
    root = workspace.resolve()
    read = [Path(f.path).resolve() for f in live.data_files(root)]
    found = [p for p in read if p.is_relative_to(root) and p.suffix.lower() in READABLE]
    if not found:
        every = (p for p in sorted(root.glob("**/*")) if p.suffix.lower() in UNRECORDED and p.is_file())
        found = [p for p in islice(every, MOST_UNRECORDED) if p.resolve().is_relative_to(root)]
    return tuple(p.relative_to(root).as_posix() for p in found)


def made_at(name: str, workspace: Path) -> Iterator[tuple[str, int]]:
    """Lines of the workspace's Python files that assign a column of this name."""
    for path in sorted(workspace.glob("**/*.py"))[:200]:
        try:
            tree = ast.parse(read_text(path))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for node in ast.walk(tree):
            stored = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
            if stored and isinstance(node.slice, ast.Constant) and node.slice.value == name:  # type: ignore[attr-defined]
                yield path.relative_to(workspace).as_posix(), node.lineno  # type: ignore[attr-defined]
            elif isinstance(node, ast.keyword) and node.arg == name:
                yield path.relative_to(workspace).as_posix(), node.value.lineno


def _in_time(reached: Reached) -> bool:
    """Whether the rows follow each other, so that a target may be meant to be a later row's: then input and target of a
    row of the file need not arrive together."""
    if any(c.numbers is not None and len(c.numbers) > 2 and (np.diff(c.numbers) >= 0).all()
           and len(np.unique(c.numbers)) > len(c.numbers) / 10 for c in reached.table.columns):
        return True
    values = reached.column.numbers
    if values is None:
        keys = np.asarray(reached.column.texts, object)
        values = np.unique(keys.astype(str), return_inverse=True)[1].astype(np.float64)
    there = values[np.isfinite(values)]
    if len(there) < 3 or there.std() == 0:
        return False
    return bool(abs(np.corrcoef(there[:-1], there[1:])[0, 1]) > 0.3)
