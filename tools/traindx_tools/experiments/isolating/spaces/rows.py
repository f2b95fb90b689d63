"""Rows of a data file: those in which a bad file differs from a good one, or all of one, of which some are left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.isolating.outcomes import Items
from traindx_tools.experiments.isolating.spaces.data_files import digest
from traindx_tools.experiments.isolating.spaces.row_files import Arrays, read_rows
from traindx_tools.experiments.isolating.spaces.space import hashed
from traindx_tools.experiments.isolating.spaces.target import Target, target_of
from traindx_tools.experiments.place import Prepared


@dataclass(frozen=True)
class RowsOfTwo:
    """See `spaces.space.Space`. Files of one length differ row by row; else the rows that only the bad one has are
    tried, and what is not tried is not there."""

    good: Any
    bad: Any
    target: Target
    identity: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, good: Path, bad: Path, command: str, workspace: Path, at: str | None = None) -> RowsOfTwo:
        """Raises UnreadableInput or BadUsage."""
        target = target_of(command, workspace, (good, bad), "data", at)
        files = read_rows(good), read_rows(bad)
        made = cls(*files, target, hashed(["rows", target.path, digest(good), digest(bad)]))
        if not made.alike:
            raise BadUsage(f"{good} and {bad} do not hold rows of one kind: expected one format, arrays of the same "
                           "names, types and shapes")
        counts = files[0].count, files[1].count
        note = f"the files have {counts[0]:,} and {counts[1]:,} rows: those that only the bad one has are tried"
        return made if made.aligned else replace(made, notes=(note,))

    @property
    def alike(self) -> bool:
        """Both hold rows of one kind, so that those of one can stand in the other."""
        if type(self.good) is not type(self.bad):
            return False
        return not isinstance(self.bad, Arrays) or _alike(self.good, self.bad)

    @cached_property
    def aligned(self) -> bool:
        """Both have as many rows."""
        return bool(self.good.count == self.bad.count)

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """Of the bad file's rows that differ, from 0."""
        theirs = self.bad.digests()
        if self.aligned:
            ours = self.good.digests()
            return tuple(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
        left = Counter(self.good.digests())
        found = []
        for i, row in enumerate(theirs):
            left[row] -= 1
            if left[row] < 0:
                found.append(i)
        return tuple(found)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """`row 17`, counted from 0."""
        return tuple(f"row {n}" for n in self.numbers)

    def prepared(self, part: Items) -> Prepared:
        """The file with these rows as in the bad one."""
        tried, wanted = set(self.numbers), {self.numbers[i] for i in part}
        if self.aligned:
            places = [(self.bad if i in wanted else self.good, i) for i in range(self.bad.count)]
        else:
            places = [(self.bad, i) for i in range(self.bad.count) if i not in tried or i in wanted]
        return Prepared(self.target.command, files={self.target.path: self.bad.written(places)})


@dataclass(frozen=True)
class RowsOfOne:
    """See `spaces.space.Space`. A row that is left out is a copy of another one, in all files that go together."""

    files: Mapping[str, Any]
    """By the path in the workspace that the run reads; all with the same number of rows."""
    command: str
    identity: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, path: Path, command: str, workspace: Path, at: str | None = None) -> RowsOfOne:
        """The file, and beside it the .npy files with as many rows (`x.npy`, `y.npy`). Raises as `read_rows` does."""
        target = target_of(command, workspace, (path,), "data", at)
        own = read_rows(path)
        home = Path(target.path).parent
        files = {target.path: own}
        inside = path.resolve() == (workspace.resolve() / target.path)
        for other in sorted(path.parent.glob("*.npy")) if inside and path.suffix == ".npy" else ():
            if other.name != path.name and (rows := read_rows(other)).count == own.count:
                files[str(home / other.name)] = rows
        notes = ["a row that is left out is a copy of another one, so that counts stay"]
        if len(files) > 1:
            notes.append(f"rows of {', '.join(sorted(files))} go together")
        if own.count < 2:
            raise BadUsage(f"{path}: holds one row; there is nothing to leave out")
        parts = [digest(path), *(digest(workspace / f) for f in files if (workspace / f).is_file())]
        return cls(files, target.command, hashed(["rows left out", *files, *parts]), tuple(notes))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """`row 17`, counted from 0."""
        return tuple(f"row {n}" for n in range(next(iter(self.files.values())).count))

    def prepared(self, part: Items) -> Prepared:
        """The files with these rows, and copies of them in place of the others."""
        held = sorted(part)
        order = [i if i in part or not held else held[i % len(held)] for i in range(len(self.labels))]
        files = {name: rows.written([(rows, i) for i in order]) for name, rows in self.files.items()}
        return Prepared(self.command, files=files)


def _alike(one: Arrays, other: Arrays) -> bool:
    shapes = [{n: (a.shape[1:], a.dtype) for n, a in f.rows.items()} for f in (one, other)]
    return shapes[0] == shapes[1]
