"""Two folders of data: one difference a file that was changed, added or removed. Or one folder, of which files are
left out: a file that is left out is another one of its kind in its place, so that names and counts stay.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from traindx_tools.errors import BadUsage, UnreadableInput
from traindx_tools.experiments.isolating.outcomes import Items
from traindx_tools.experiments.isolating.spaces.space import hashed
from traindx_tools.experiments.isolating.spaces.target import Target, target_of
from traindx_tools.experiments.place import Prepared

MOST_BYTES = 4 * 2**30
"""Of a folder."""
MOST_FILES = 100_000


class FromDisk(Mapping[str, "bytes | None"]):
    """Contents by path in the workspace, read when they are asked for; None: not there."""

    def __init__(self, places: Mapping[str, Path | None]) -> None:
        self._places = dict(places)

    def __getitem__(self, name: str) -> bytes | None:
        place = self._places[name]
        return None if place is None else place.read_bytes()

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def listed(folder: Path) -> dict[str, Path]:
    """The files below a folder by their path in it. Raises UnreadableInput for none, or for too much."""
    if not folder.is_dir():
        raise UnreadableInput(f"{folder}: there is no such folder")
    found = {str(p.relative_to(folder)): p for p in sorted(folder.rglob("*")) if p.is_file()}
    size = sum(p.stat().st_size for p in found.values())
    if not found or len(found) > MOST_FILES or size > MOST_BYTES:
        raise UnreadableInput(f"{folder}: {len(found):,} files with {size / 2**30:.1f} GiB; between 1 and "
                              f"{MOST_FILES:,} files with at most {MOST_BYTES // 2**30} GiB can be tried")
    return found


def digest(path: Path | None) -> str:
    """Of the content; "" for no file."""
    if path is None:
        return ""
    whole = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(2**20):
            whole.update(block)
    return whole.hexdigest()


@dataclass(frozen=True)
class TwoFolders:
    """See `spaces.space.Space`."""

    good: Mapping[str, Path]
    bad: Mapping[str, Path]
    target: Target
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, good: Path, bad: Path, command: str, workspace: Path, at: str | None = None) -> TwoFolders:
        """Raises UnreadableInput or BadUsage."""
        return cls(listed(good), listed(bad), target_of(command, workspace, (good, bad), "data", at))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the files that differ."""
        every = sorted({*self.good, *self.bad})
        return tuple(n for n in every if digest(self.good.get(n)) != digest(self.bad.get(n)))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The path, and what became of it."""
        return tuple(n if n in self.good and n in self.bad else f"{n} ({'removed' if n in self.good else 'added'})"
                     for n in self.names)

    @cached_property
    def identity(self) -> str:
        """Of every content that differs."""
        return hashed(["folders", self.target.path, *(f"{n} {digest(s.get(n))}" for n in self.names
                                                      for s in (self.good, self.bad))])

    def prepared(self, part: Items) -> Prepared:
        """The folder with these files as in the bad one."""
        bad = {self.names[i] for i in part}
        places = {f"{self.target.path}/{n}": (self.bad if n in bad else self.good).get(n)
                  for n in {*self.good, *self.bad}}
        return Prepared(self.target.command, files=FromDisk(places))


@dataclass(frozen=True)
class OneFolder:
    """See `spaces.space.Space`: of a set of shards some are left out.

    Files whose names differ in numbers alone are of one kind; those with the same numbers (`x_003.npy`, `y_003.npy`)
    go together. Files without a number are left as they are.
    """

    files: Mapping[str, Path]
    target: Target
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, folder: Path, command: str, workspace: Path, at: str | None = None) -> OneFolder:
        """Raises BadUsage where no two files are of one kind."""
        made = cls(listed(folder), target_of(command, workspace, (folder,), "data", at), (
            "a shard that is left out is a copy of another one, so that names and counts stay",))
        if len(made.shards) < 2:
            raise BadUsage(f"{folder}: no two files whose names differ in numbers alone: there are no shards to leave "
                           "out. Give a second folder that works, or one file, whose rows are tried")
        return made

    @cached_property
    def shards(self) -> Mapping[tuple[str, ...], tuple[str, ...]]:
        """Names of files by their numbers."""
        kinds: dict[str, list[str]] = {}
        for name in self.files:
            kinds.setdefault(re.sub(r"\d+", "#", name), []).append(name)
        found: dict[tuple[str, ...], list[str]] = {}
        for kind, names in kinds.items():
            if "#" in kind and len(names) > 1:
                for name in names:
                    found.setdefault(tuple(re.findall(r"\d+", name)), []).append(name)
        return {k: tuple(v) for k, v in sorted(found.items(), key=lambda i: tuple(map(int, i[0])))}

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The files of each shard."""
        return tuple(", ".join(names) for names in self.shards.values())

    @cached_property
    def identity(self) -> str:
        """Of every shard's content."""
        return hashed(["folder", self.target.path, *(f"{n} {digest(p)}" for n, p in self.files.items())])

    def prepared(self, part: Items) -> Prepared:
        """The folder with these shards, and copies of them in place of the others."""
        every = list(self.shards.values())
        held = sorted(part)
        places = {f"{self.target.path}/{n}": p for n, p in self.files.items()}
        for number, names in enumerate(every):
            if number not in part and held:
                for name, other in zip(names, every[held[number % len(held)]], strict=False):
                    places[f"{self.target.path}/{name}"] = self.files[other]
        return Prepared(self.target.command, files=FromDisk(places))
