"""From paths to findings about data: find the files, read each in bounds, group them, judge."""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from traindx_tools.artifact import Artifact
from traindx_tools.errors import MissingExtra, UnreadableInput
from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.column import Damage
from traindx_tools.on_data.file_groups import unfolded
from traindx_tools.on_data.gathered import OF_GROUPS, OF_PICTURES, of_groups, of_pictures
from traindx_tools.on_data.grouping import Placed, data_sets, joined, with_split
from traindx_tools.on_data.hints import hints_of, read_settings
from traindx_tools.on_data.listings import listings_of
from traindx_tools.on_data.name_list import NameList
from traindx_tools.on_data.name_lists import name_lists_of
from traindx_tools.on_data.numbered_names import numbered_of
from traindx_tools.on_data.one_fault import once
from traindx_tools.on_data.readers import FORMATS, format_of, read_file
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.folders import FEWEST, PICTURES, SOUNDS, read_folder
from traindx_tools.on_data.readers.json_lines import NO_RECORDS
from traindx_tools.on_data.readers.kinds import kinds_of
from traindx_tools.on_data.readers.numpy_files import Broken
from traindx_tools.on_data.readers.shares import shares_of
from traindx_tools.on_data.roles import is_metrics
from traindx_tools.on_data.set_samples import sampled_set
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.split_files import SplitFile, split_files_of
from traindx_tools.on_data.stored_counts import counts_of
from traindx_tools.on_data.stored_statistics import of_weights, statistics_of
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.on_logs.artifacts import discover
from traindx_tools.rules import Rule, rules_in

_log = logging.getLogger(__name__)

ROOM = "traindx_tools.on_data.rules"
SECONDS = 60.0
"""Time for `traindx data`; what was not read by then is named."""
_NO_TABLE = f"not read: {NO_RECORDS}"
MOST_VALUES = 2**28
"""Values of all files together that are kept at most: 1 GiB of float32."""
MOST_UNPACKED = 2**32
"""Bytes of all packed files together."""


@dataclass(frozen=True, eq=False)
class DataReport:
    """What was read, what was seen in it, and what was not read."""

    sets: tuple[DataSet, ...]
    findings: tuple[Finding, ...]
    artifacts: tuple[Artifact, ...]
    """Every file that was looked at; a note says why one was refused, sampled or not reached."""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    name_lists: tuple[NameList, ...] = ()
    """Names with an index each, of files beside the data."""

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """The findings that are more than remarks."""
        return tuple(f for f in self.findings if f.severity is not Severity.INFO)


@dataclass
class _Reading:
    """What has been read so far."""

    placed: list[Placed] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)

    def take(self, shards: Iterable[Shard], path: str, below: PurePath) -> None:
        for shard in shards:
            if is_metrics(shard):
                self.artifacts.append(Artifact(path, shard.format, note="not read: metrics of a run, and no data"))
                continue
            self.placed.append(with_split(Placed(shard, below)))
            self.artifacts.append(Artifact(path, shard.format, shard.total, "; ".join(shard.notes)))


def examine(
    paths: Sequence[str | Path],
    *,
    seconds: float = SECONDS,
    settings: Iterable[tuple[str, str, Any]] = (),
    exclude: frozenset[str] = frozenset(),
    all_rows: bool = False,
) -> DataReport:
    """Reads the data files that the paths name (files, folders, globs) and judges them against each other.

    Nothing that a file contains is executed, nothing is written. `seconds`: no file is begun after that time.
    `settings`: (where, name, value) of the run's configuration, such as its vocabulary size. `exclude`: real paths
    that are no data. `all_rows`: whether every row of a large set is looked at in full; else a sample of them is, and
    one pass goes over all (`set_samples.py`). Raises UnreadableInput where a path names nothing.
    """
    started = time.monotonic()
    found = discover(list(paths))
    files = [
        (s.local, s.name) for s in found.sources if s.local is not None and os.path.realpath(s.local) not in exclude
    ]
    reading = _Reading(artifacts=list(found.left_out))
    files = _without_parameters(files, reading)
    root = _common([p for p, _ in files])
    _read_all(files, root, started + seconds, reading, by_set=not all_rows)
    hints = hints_of(settings, read_settings(p for p, _ in files), frozenset(p.name for p, _ in files))
    sets = data_sets(joined(reading.placed))
    if not all_rows:
        sets = tuple(sampled_set(d, Bounds(ends=started + seconds), hints.vocabulary) for d in sets)
        reading.artifacts = [_as_sampled(a, sets) for a in reading.artifacts]
    notes: list[str] = []
    listings = listings_of(sets, [str(p) for p, _ in files])
    beside = statistics_of(p for p, _ in files), counts_of(p for p, _ in files), name_lists_of(files)
    rows = split_files_of(p for p, _ in files)
    view = View(sets, hints, listings, *beside, modified=_modified(files), split_files=rows,
                kept=of_weights(p for p, _ in files), numbered=numbered_of(files), unfolded=tuple(unfolded(sets)),
                by_file=tuple(of_groups(sets)), pictures=tuple(of_pictures(sets, listings)))
    findings = judged(view, notes)
    read = {os.path.basename(s.file): what for what, some in (("counts", beside[1]), ("means and spreads", beside[0]))
            for s in some}
    told = tuple(_as_numbers(_as_splits(a, {f.path: f for f in rows}), read) for a in reading.artifacts)
    return DataReport(sets, findings, told, tuple(notes), time.monotonic() - started, beside[2])


def _without_parameters(files: Sequence[tuple[Path, str]], reading: _Reading) -> list[tuple[Path, str]]:
    """Without arrays in folders of npy files that are a model or an optimizer's state: they are no columns."""
    if not any(name.endswith(".npy") for _, name in files):
        return list(files)
    from traindx_tools.on_weights.checkpoint_folders import array_folders

    folders = array_folders(name for _, name in files)
    of = {name: folder for folder, names in folders.items() for name in names}
    reading.artifacts += [Artifact(name, "npy", note=f"not read: a tensor of a model: traindx weights {folder}")
                          for name, folder in of.items()]
    return [(path, name) for path, name in files if name not in of]


def readable(paths: Sequence[str | Path], seconds: float = SECONDS
             ) -> tuple[tuple[DataSet, ...], tuple[NameList, ...]]:
    """The sets of these files and the lists of names among them, without a judgement. Unreadable files are left out."""
    started, reading = time.monotonic(), _Reading()
    files = [(Path(p), str(p)) for p in paths if os.path.isfile(p)]
    _read_all(files, _common([p for p, _ in files]), started + seconds, reading)
    return data_sets(joined(reading.placed)), name_lists_of(files)


def _as_splits(artifact: Artifact, files: Mapping[str, SplitFile]) -> Artifact:
    """A file of row numbers as what it was read for; it is no table of records, and none is missing."""
    file = next((f for p, f in files.items() if os.path.realpath(p) == os.path.realpath(artifact.path)), None)
    if file is None:
        return artifact
    return replace(artifact, note=f"row numbers of the splits {', '.join(file.rows)}: {file.count:,} rows")


def _as_numbers(artifact: Artifact, read: Mapping[str, str]) -> Artifact:
    """A file that is no table as what it was read for: the statistics beside the data."""
    what = read.get(os.path.basename(artifact.path))
    return replace(artifact, note=f"{what}, laid beside the data") if what and artifact.note == _NO_TABLE else artifact


def _as_sampled(artifact: Artifact, sets: Sequence[DataSet]) -> Artifact:
    """A file with what was looked at of it."""
    shards = [s for d in sets for s in d.shards if s.whole is not None or s.numbers is not None]
    notes = [n for s in shards if artifact.path in (s.name, *(c.file for c in s.columns.values())) for n in s.notes]
    return replace(artifact, note="; ".join(dict.fromkeys(notes))) if notes else artifact


def _modified(files: Iterable[tuple[Path, str]]) -> dict[str, float]:
    """When each file was written last, by its name."""
    out: dict[str, float] = {}
    for path, name in files:
        with contextlib.suppress(OSError):
            out[name] = path.stat().st_mtime
    return out


def judged(view: View, notes: list[str]) -> tuple[Finding, ...]:
    """What the observations see, the worst first. One that fails on an input is named in `notes` and skipped."""
    found: list[Finding] = []
    for module in rules_in(ROOM):
        try:
            with np.errstate(all="ignore"):  # the data hold infinities, and that is told
                found += module.check(view)
                found += _of_gathered(view, module)
        except Exception as error:  # noqa: BLE001 - one broken observation must not cost a person the others
            _log.debug("rule %s failed", module.rule.id, exc_info=True)
            notes.append(
                f"rule {module.rule.id} failed on this input ({type(error).__name__}: {error}) and was skipped"
            )
    found = once(found)
    return tuple(sorted(found, key=lambda f: (-f.severity.rank, f.rule)))


def _of_gathered(view: View, module: Any) -> Iterator[Finding]:
    """What an observation of parts, channels or labels sees in the sets that no file holds as they are."""
    told: Rule = getattr(module, "rule", None) or module.RULE
    for rules, sets in ((OF_GROUPS, view.by_file), (OF_PICTURES, view.pictures)):
        if sets and told.id in rules:
            yield from module.check(replace(view, sets=sets, unfolded=()))


def _common(files: Sequence[Path]) -> Path:
    parents = [os.path.dirname(os.path.abspath(f)) for f in files]
    return Path(os.path.commonpath(parents)) if parents else Path()


def _read_all(files: Sequence[tuple[Path, str]], root: Path, ends: float, reading: _Reading, by_set: bool = False
              ) -> None:
    media = {kind: [(p, n) for p, n in files if p.suffix.lower() in kind] for kind in (PICTURES, SOUNDS)}
    in_folders = {p for kind in media.values() if len(kind) >= FEWEST for p, _ in kind}
    chosen = [(p, n, f) for p, n, f in _formats(files, reading) if p not in in_folders]
    share = max(1, len(chosen))
    bounds = Bounds(
        values=min(2**27, max(2**20, MOST_VALUES // share)),
        ends=ends,
        unpacked=min(2**30, max(2**26, MOST_UNPACKED // share)),
        by_set=by_set,
    )
    parts = shares_of(chosen) if by_set else {}
    for path, name, form in sorted(chosen, key=lambda c: c[0].stat().st_size):
        if bounds.over:
            reading.artifacts.append(Artifact(name, form, note="not read: the time was used up"))
            continue
        _read_one(path, name, form, replace(bounds, share=parts.get(path, 0.0)), root, reading)
    for kind, found in media.items():
        if len(found) >= FEWEST:
            below = sorted((p, str(Path(os.path.abspath(p)).relative_to(root))) for p, _ in found)
            shown = os.path.relpath(root)
            for called, some in kinds_of(below).items() if kind is PICTURES else [("", below)]:
                name = os.path.join(shown, called) if called else shown
                where = PurePath(root.name, called, called) if called else PurePath(root.name)
                reading.take(read_folder(some, name, kind is SOUNDS, bounds), name, where)


def _formats(files: Sequence[tuple[Path, str]], reading: _Reading) -> Iterator[tuple[Path, str, str]]:
    for path, name in files:
        try:
            form = format_of(path)
        except OSError as error:
            reading.artifacts.append(Artifact(name, "unknown", note=f"not read: {error.strerror}"))
            continue
        if form == "npz" and _is_of_a_model(path):
            reading.artifacts.append(Artifact(name, form, note="holds weights by their shapes: no data"))
        elif form is not None:
            yield path, name, form


def _is_of_a_model(path: Path) -> bool:
    """Whether an npz holds layers, or weights and what an optimizer keeps of each, told by shapes alone."""
    from traindx_tools.on_weights.npz_shapes import holds_layers, holds_weights_and_moments

    try:
        with zipfile.ZipFile(path) as archive:
            return holds_weights_and_moments(archive) or holds_layers(archive)
    except (OSError, zipfile.BadZipFile):
        return False


def _read_one(path: Path, name: str, form: str, bounds: Bounds, root: Path, reading: _Reading) -> None:
    below = PurePath(os.path.relpath(os.path.abspath(path), root))
    try:
        reading.take(read_file(path, name, form, bounds), name, below)
    except Broken as error:
        broken = Shard(name, form, {}, 0, 0, damage=(Damage(str(error)),))
        reading.placed.append(with_split(Placed(broken, below)))
        reading.artifacts.append(Artifact(name, form, note=f"not read: {error}"))
    except MissingExtra as error:
        reading.artifacts.append(Artifact(name, form, note=f"not read: {error}"))
    except UnreadableInput as error:
        said = str(error)
        reading.artifacts.append(Artifact(name, form, note=said if said.startswith("refused") else f"not read: {said}"))
    except Exception as error:  # noqa: BLE001 - one file that a reader cannot take must not cost a person the others
        _log.debug("reading %s failed", name, exc_info=True)
        told = f"a defect of traindx: its reader failed ({type(error).__name__}: {str(error)[:100]})"
        reading.artifacts.append(Artifact(name, form, note=f"not read: {told}"))


def require_data(report: DataReport, paths: Sequence[str | Path]) -> None:
    """Raises UnreadableInput where not one data file could be read, so that nobody takes silence for health."""
    if report.sets:
        return
    told = "; ".join(f"{a.path}: {a.note}" for a in report.artifacts[:5] if a.note) or "no data file is there"
    from traindx_tools.on_weights import is_weights

    weights = next((str(p) for p in paths if is_weights(str(p))), None)
    if weights is not None:
        raise UnreadableInput(f"{weights} holds weights and no data: `traindx weights {shlex.quote(weights)}` looks "
                              "into it")
    raise UnreadableInput(f"no data could be read in {' '.join(map(str, paths))}: {told}. Read are: {FORMATS}")
