"""The weights that belong to a run: files that were given, and those that its code, configuration or log names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import monotonic
from typing import TYPE_CHECKING

from traindx_tools.errors import TraindxError
from traindx_tools.finding import Finding
from traindx_tools.on_weights.between_files import between_files
from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.checkpoint_folders import folders_of
from traindx_tools.on_weights.examine import examine
from traindx_tools.on_weights.file_families import Family, families, of_ranks, read_family
from traindx_tools.on_weights.formats.keras_files import holds_variables
from traindx_tools.on_weights.formats.reading import SUFFIXES, form_of, read_checkpoint
from traindx_tools.on_weights.movement import movement
from traindx_tools.on_weights.rules.w101_nonfinite import RULE as NONFINITE_RULE
from traindx_tools.on_weights.rules.w101_nonfinite import as_result
from traindx_tools.on_weights.rules.w116_damaged import damaged
from traindx_tools.on_weights.rules.w132_merged_times import RULE as PROJECTED
from traindx_tools.on_weights.rules.w140_counts_apart import RULE as W140
from traindx_tools.on_weights.rules.w142_schedule_ahead import RULE as W142
from traindx_tools.on_weights.rules.w175_merged_otherwise import RULE as MERGED
from traindx_tools.on_weights.tensor import Damaged

if TYPE_CHECKING:
    from traindx_tools.on_code.project import Project

SECONDS = 20.0
"""What reading weights may take within a diagnosis: a gigabyte takes about two."""
MOST_FILES = 12
MOST_TEXT = 2**20
MOST_TEXTS = 100
FORMATS = frozenset({"torch", "safetensors", "npz", "msgpack", "index", "hdf5", "keras"})
_NAMED = re.compile(r"[\w./@:+-]{1,200}\.(?:safetensors|pt|pth|ckpt|bin|npz|msgpack|h5|hdf5|keras)\b")

_NUMBER = re.compile(r"(\d+)")
_STEP = re.compile(
    r"(check_?point|ckpt|epochs?|ep|steps?|iter|iteration|it|update|snapshot|save)[_.=-]*$|[/\\]$", re.IGNORECASE)
_NO_STEP = re.compile(
    r"(?i)(rank|shard|part|of|seed|fold|member|worker|process|proc|host|node|stage|layer|expert|v|ver|version|run|trial"
    r"|model|size|dim|width|hidden|res|px|vocab|k|top|lr|bs|batch|x)[_.=-]*$")
"""What a number is called that tells models, or parts of one, apart, and no two moments of a training."""
_NO_MOMENT = re.compile(
    r"(?i)(task|client|user|speaker|site|adapter|lora|split|subject|patient|class|domain|lang|group|id|no|nr|num|device"
    r"|candidate|variant|exp|experiment|ens|ensemble|copy|agent|player|bag|head|trial|try|net|init|start|sample)[_.=-]*$")
"""The same of numbers of two digits (`asr_08`), which may be of models that were tuned from one."""
_NEAR = 0.1
"""Of the norm, that the typical matrix moved between two of them; other models are apart by about its norm."""
_MOST_COMPARED = 2**28
_OF_STEPS = frozenset({W140.id, W142.id})
_DIGITS = 3
"""Digits from which on a number behind any other word counts steps: `state_000300`, `params-1200`."""


@dataclass(frozen=True)
class OfRun:
    """What was seen in the weights of a run."""

    findings: tuple[Finding, ...] = ()
    read: tuple[str, ...] = ()
    """The files that were read."""
    named: tuple[str, ...] = ()
    """Those of them that were not given, and that a text names."""
    notes: tuple[str, ...] = ()
    """What was not read, and why."""


def of_run(given: Iterable[str], texts: Sequence[str | Path] = (), root: Path | None = None, *,
           seconds: float = SECONDS, code: Sequence[Project] = (), beside: Iterable[str] = ()) -> OfRun:
    """Findings in the weights of a run.

    `given`: files that were given or lie in a folder that was. `texts`: code, configurations and logs in which names of
    files are looked for. A named file is read where it lies below the folder of the text that names it, or below
    `root`. `code`: the run's programs as they were followed: a model that loads a file is laid beside it. `beside`: all
    files of the run: folders of them that are one checkpoint are read as one.
    """
    named = [f for t in texts[:MOST_TEXTS] for f in _named_in(Path(t), root)]
    every = list(beside)
    folders = folders_of(every)
    within = {f for files in folders.values() for f in files}
    own = [f for f in given if f not in within and is_weights(f)] + list(folders)
    files = dict.fromkeys([*own, *named])
    until = monotonic() + seconds
    findings: list[Finding] = []
    read: list[str] = []
    held: list[Checkpoint] = []
    notes: list[str] = []
    results = _results([Path(t) for t in texts if str(t).endswith((".py", ".ipynb"))], root)
    ordered = _without_shards(list(files))
    earlier = _last_of_series(ordered)
    ranks = [f for folder, files in folders.items() if (f := of_ranks(folder, files)) is not None]
    for family in (*families(ordered, _counts_steps), *ranks):
        findings += _of_family(family, until)
        ordered.sort(key=lambda f, last=family.members: f in last)  # type: ignore[misc]
    together = {(f.rule, f.where.file, f.where.module) for f in findings}
    for file in ordered:
        if len(read) >= MOST_FILES or monotonic() >= until:
            notes.append(f"{file}: weights not read: {len(read)} files took the time there was; traindx weights {file}")
            continue
        try:
            seen = examine(file, earlier.get(file), seconds=until - monotonic(), code=code)
        except Damaged as broken:
            read.append(file)
            findings.append(damaged(file, broken))
            continue
        except TraindxError as refused:
            notes.append(f"{file}: {str(refused).removeprefix(f'{file}: ')}")
            continue
        read.append(file)
        held.append(seen.checkpoint)
        made = os.path.realpath(file) in results
        findings += [as_result(f) if made and f.rule == NONFINITE_RULE.id else f for f in seen.findings
                     if not _told(f, together)]
        notes += [f"{file}: {n}" for n in seen.notes]
        if seen.left_out:
            notes.append(f"{file}: {len(seen.left_out)} tensors were not measured in {seconds:g} s; traindx weights "
                         f"{file}")
    findings += between_files(held, code, list(dict.fromkeys([*every, *files, *map(str, texts)])), until)
    for folder in _states(own):
        findings += _of_state(folder, until)
    exact = {f.where.file for f in findings if f.rule == MERGED.id}  # with the base the projection is told exactly
    findings = [f for f in findings if f.rule != PROJECTED.id or f.where.file not in exact]
    known = {os.path.realpath(f) for f in own}
    more = tuple(f for f in read if os.path.realpath(f) not in known)
    return OfRun(tuple(findings), tuple(read), more, tuple(notes))


def _of_family(family: Family, until: float) -> Sequence[Finding]:
    """What the parts of one model say of each other."""
    left = until - monotonic()
    try:
        return examine(read_family(family), seconds=left).findings if left > 0 else ()
    except TraindxError:
        return ()  # each file is told by itself


def _told(finding: Finding, told: Set[tuple[str, str | None, str | None]]) -> bool:
    """Whether the same was said of the same tensor, as of a part of its family."""
    rule, file, module = finding.rule, finding.where.file, finding.where.module or ""
    return any(r == rule and f == file and (m or "").endswith(module) for r, f, m in told)


def _states(files: Iterable[str]) -> list[str]:
    """Folders in which the optimizer and the schedule of one run lie in files of their own (accelerate, Trainer)."""
    held: dict[str, set[str]] = {}
    for file in files:
        held.setdefault(os.path.dirname(file) or ".", set()).add(os.path.basename(file).rpartition(".")[0])
    return [folder for folder, names in held.items() if names >= {"optimizer", "scheduler"}]


def _of_state(folder: str, until: float) -> list[Finding]:
    """What the files of such a folder say of each other's steps; the rest was told of each file."""
    left = until - monotonic()
    try:
        seen = examine(folder, seconds=left) if left > 0 else None
    except TraindxError:
        return []
    return [f for f in seen.findings if f.rule in _OF_STEPS] if seen is not None else []


def _results(code: Sequence[Path], root: Path | None) -> frozenset[str]:
    """The files that the code writes and, by their names, reads nowhere. A name that is filled in may be any."""
    from traindx_tools.on_data.named_paths import named_paths

    here = root or Path.cwd()
    written = {os.path.realpath(p) for p in named_paths(code, here, written=True)}
    return frozenset(written - {os.path.realpath(p) for p in named_paths(code, here)})


def is_weights(file: str) -> bool:
    """Whether a file is of weights by its content; data in npz are told by the data room."""
    if "://" in file or not os.path.isfile(file):
        return False
    suffix = Path(file).suffix
    if suffix not in SUFFIXES and not file.endswith(".index.json"):
        return False
    try:
        form = form_of(file)
    except TraindxError:
        return False
    if form == "hdf5":
        return holds_variables(file)
    return form in FORMATS and (form != "npz" or _like_weights(file))


def _like_weights(file: str) -> bool:
    """Whether the arrays of an npz are called as those of a model, or are weights and their moments by their shapes,
    or masks of matrices."""
    import zipfile

    from traindx_tools.on_weights.npz_shapes import holds_layers, holds_masks, holds_weights_and_moments

    pattern = re.compile(r"weight|bias|kernel|scale|embedding|running_|/w\b|\bw\d|\.w\b")
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            called = sum(bool(pattern.search(n)) for n in names)
            return called >= max(1, len(names) / 3) or any(
                holds(archive) for holds in (holds_weights_and_moments, holds_masks, holds_layers))
    except (zipfile.BadZipFile, OSError):
        return False


def _named_in(text: Path, root: Path | None) -> Iterator[str]:
    """The files of weights that a text names and that lie below its folder, or below the root."""
    try:
        with text.open(encoding="utf-8", errors="replace") as stream:
            told = stream.read(MOST_TEXT)
    except OSError:
        return
    homes = [h for h in (text.parent, root) if h is not None]
    for name in dict.fromkeys(_NAMED.findall(told)):
        paths = [h / name for h in homes if not os.path.isabs(name)]
        here = [p for p, h in zip(paths, homes, strict=False)
                if p.is_file() and p.resolve().is_relative_to(h.resolve()) and is_weights(str(p))]
        yield from map(str, here[:1])


def _last_of_series(files: Sequence[str]) -> dict[str, str]:
    """The last checkpoint of each series and the one before it: paths that differ in one number of steps or epochs."""
    series: dict[tuple[str, ...], list[tuple[int, str, str]]] = {}
    for file in files:
        pieces = _NUMBER.split(os.path.abspath(file))
        for at in range(1, len(pieces), 2):
            if _counts_steps(pieces[at - 1], pieces[at]):
                key = (*pieces[:at], "#", *pieces[at + 1:])
                series.setdefault(key, []).append((int(pieces[at]), file, pieces[at]))
    found = {}
    for key, same in series.items():
        (_, before, _), (_, last, digits) = sorted(same)[-2:] if len(same) > 1 else [(0, "", "")] * 2
        sure, short = _STEP.search(key[key.index("#") - 1]) is not None, len(digits) < _DIGITS
        if before and last not in found and (sure or _of_one_model(last, before, near=short)):
            found[last] = before
    return found


def _of_one_model(one: str, other: str, near: bool = False) -> bool:
    """Whether two checkpoints hold tensors of the same names and shapes: `net_152` is no later `net_101`.

    `near`: matrices must be near to each other as well, and not equal, as of two moments of one training.
    """
    try:
        held = [read_checkpoint(f).weights.tensors for f in (one, other)]
        shapes = [{n: t.shape for n, t in tensors.items()} for tensors in held]
        if not shapes[0] or shapes[0] != shapes[1] or not near:
            return bool(shapes[0]) and shapes[0] == shapes[1]
        if sum(t.nbytes for t in held[0].values()) > _MOST_COMPARED:
            return False
        changes = [c for n, c in movement(*held).items() if held[0][n].matrix]
    except TraindxError:
        return False
    return bool(changes) and 0 < median(changes) < _NEAR


def _counts_steps(before: str, number: str) -> bool:
    """Whether a number in a path is one of steps or epochs, by the word before it, or by its length."""
    long = len(number) >= _DIGITS or (len(number) == _DIGITS - 1 and not _NO_MOMENT.search(before))
    return bool(_STEP.search(before)) or (long and not _NO_STEP.search(before)
                                          and bool(re.search(r"[A-Za-z][_.=-]*$", before)))


def _without_shards(files: list[str]) -> list[str]:
    """Without files that an index among them names: they are read through it. The small ones first."""
    homes = {os.path.dirname(f) for f in files if f.endswith(".index.json")}
    once = {os.path.realpath(f): f for f in reversed(files)}
    kept = [f for f in once.values() if f.endswith(".index.json") or not (
        os.path.dirname(f) in homes and re.search(r"-\d{5}-of-\d{5}\.", f))]
    return sorted(kept, key=lambda f: (os.path.getsize(f) > 2**30, files.index(f)))
