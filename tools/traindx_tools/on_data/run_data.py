"""The data of a run: what its folder holds, and what its code, configuration and log name below that folder.

Files that the readers of logs understood, and files that the code only writes, are the run's own outputs and no data.
"""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from traindx_tools.artifact import Artifact
from traindx_tools.errors import UnreadableInput
from traindx_tools.finding import Finding
from traindx_tools.live.files_read import FileRead
from traindx_tools.live.reading import LiveRun
from traindx_tools.on_data.code_poles import at_poles
from traindx_tools.on_data.hints import flattened_settings
from traindx_tools.on_data.named_paths import named_folders, named_paths, parsed
from traindx_tools.on_data.never_read import never_read
from traindx_tools.on_data.numbered_rows import named_otherwise
from traindx_tools.on_data.used_by_code import with_use
from traindx_tools.on_logs.run import Run
from traindx_tools.on_variables.numbered import Numbered

SECONDS = 20.0
"""Time for the data of a run within `diagnose`; what was not read by then is said."""
PICTURES = 50
"""Pictures of a folder, or of several side by side, that are more than a run's plots."""
FEWEST_A_CLASS = 4
"""Pictures of one of several folders side by side."""
_NO_DATA = frozenset(
    {
        "image",
        "python",
        "notebook",
        "shell",
        "markdown",
        "html",
        "patch",
        "yaml",
        "toml",
        "traindx batch",
        "traindx_live",
        "traindx summary",
        "cuda_memory_snapshot",
    }
)
"""Pictures in a run's folder are mostly its plots: those in a folder that the code names are data."""


_STATE = frozenset((".pt", ".pth", ".ckpt", ".safetensors", ".json", ".txt"))
"""Endings of what a program reads besides data: checkpoints, settings. Those that the code names are looked at."""
_WORTH_TELLING = re.compile("the time was used up|needs the package|damaged")


@dataclass(frozen=True, eq=False)
class OfRun:
    """What the data of a run show."""

    findings: tuple[Finding, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    notes: tuple[str, ...] = ()
    judged_whole: bool = False
    """Whether several files of one set were read, with all their rows, and none was left out."""

    def among(self, artifacts: Sequence[Artifact]) -> tuple[Artifact, ...]:
        """The artifacts with the files that were read as data, instead of why no log was seen in them."""
        read = {os.path.realpath(a.path): a for a in self.artifacts}
        kept = [read.pop(os.path.realpath(a.path), a) if "://" not in a.path else a for a in artifacts]
        return (*kept, *read.values())


def of_run(parts: Sequence[Run], code: Sequence[Path], root: Path, seconds: float = SECONDS,
           read: Sequence[FileRead] = (), numbered: Sequence[Numbered] = ()) -> OfRun:
    """Reads and judges the data files of a run. Nothing of them is executed.

    `parts`: what was read of each file of the run; their artifacts are the files of its folder. `code`: its Python
    files. What the code names is read where it lies below `root` or below the folder of the code that names it. `read`:
    what the running program opened, wherever it lies; a finding on such a file says by which line. `numbered`: rows
    of tables of its model, with the names that it gives them.
    """
    used = {os.path.realpath(p) for p in named_paths(code, root)}  # what the code prepares and then loads is data
    written = {os.path.realpath(p) for p in named_paths(code, root, written=True)}
    outputs = (_outputs(parts) - (used - written)) | (written - used)
    held = [
        a.path
        for a in (a for p in parts for a in p.artifacts)
        if "://" not in a.path and a.format not in _NO_DATA and os.path.isfile(a.path)
        and os.path.realpath(a.path) not in outputs
    ]
    named = [str(p) for p in named_paths(code, root) if os.path.realpath(p) not in outputs]
    opened = [r.path for r in read if os.path.realpath(r.path) not in outputs and Path(r.path).suffix not in _STATE]
    shown = _folders_of_pictures(a for p in parts for a in p.artifacts)
    shown = _below(shown, named_folders(code, root)) if code else shown
    paths = list({os.path.realpath(p): p for p in (*opened, *named, *held, *shown)}.values())
    texts = [Path(p) for p in dict.fromkeys((*(r.path for r in read), *paths))]
    if not _any_data(paths):
        return OfRun(tuple(named_otherwise(numbered, (), (), texts)))
    from traindx_tools.on_data.examination import examine

    configured = (s for p in parts for s in flattened_settings(p.config, "the configuration"))
    try:
        report = examine(paths, seconds=seconds, settings=[*configured, *_constants(code)], exclude=frozenset(outputs))
    except UnreadableInput as error:
        return OfRun(notes=(f"the data were not read: {error}",))
    told = tuple(a for a in report.artifacts if not a.note.startswith("not read: ") or _WORTH_TELLING.search(a.note))
    by = {os.path.realpath(r.path): str(_shown(r, root)) for r in read if r.file}
    findings = [_read_by(f, by.get(os.path.realpath(f.where.file or ""))) for f in with_use(report.findings, code)]
    whole = not told_short(report.artifacts) and any(len(s.shards) > 1 for s in report.sets) and all(
        shard.numbers is None for s in report.sets for shard in s.shards)
    beside = (*at_poles(report.sets, code), *never_read(report.sets, read),
              *(named_otherwise(numbered, report.sets, report.name_lists, texts) if numbered else ()))
    return OfRun((*findings, *beside), told, report.notes, whole)


def beside_files(live: LiveRun, root: Path, seconds: float = SECONDS) -> tuple[Finding, ...]:
    """What a recorded run shows together with the files that it read, as they lie below `root`: files of a set that it
    left unread, tables that it filled from a file whose rows have other names."""
    read, numbered = live.data_files(root), live.numbered
    if not read:
        return ()
    from traindx_tools.on_data.examination import readable

    sets, lists = readable([r.path for r in read], seconds)
    return (*never_read(sets, read), *named_otherwise(numbered, sets, lists, [Path(r.path) for r in read]))


def _folders_of_pictures(artifacts: Iterable[Artifact]) -> tuple[str, ...]:
    """Folders of so many pictures that they are data: without code that would name one, or write pictures there.

    Folders side by side are one set, as those of classes are, and so are those of the same names beside another split.
    """
    counts = Counter(os.path.dirname(a.path) for a in artifacts if a.format == "image" and "://" not in a.path)
    beside: dict[str, list[str]] = {}
    for folder in (f for f, n in counts.items() if f and n >= FEWEST_A_CLASS):
        beside.setdefault(os.path.dirname(folder), []).append(folder)
    many = [f for folders in beside.values() if sum(counts[f] for f in folders) >= PICTURES for f in folders]
    names, above = {os.path.basename(f) for f in many}, {os.path.dirname(os.path.dirname(f)) for f in many}
    also = [f for p, folders in beside.items() if os.path.dirname(p) in above for f in folders
            if os.path.basename(f) in names]
    return tuple(dict.fromkeys((*(f for f, n in counts.items() if f and n >= PICTURES), *many, *also)))


def _below(folders: Sequence[str], named: Iterable[Path]) -> tuple[str, ...]:
    """The folders that lie below one that the code names by a word, and several of which do: classes or splits.

    One folder of pictures may as well be where plots go.
    """
    above = [os.path.realpath(p) + os.sep for p in named]
    found = [f for f in folders if os.path.realpath(f).startswith(tuple(above))]
    return tuple(found) if len(found) > 1 else ()


def told_short(artifacts: Iterable[Artifact]) -> bool:
    """Whether a file of data was not read, or not to its end."""
    return any(_WORTH_TELLING.search(a.note) for a in artifacts)


def told_as_data(artifacts: Iterable[Artifact]) -> tuple[Artifact, ...]:
    """The files of a run with those that a reader of data knows told as data, where the readers of logs refused them.

    Only their beginnings are looked at.
    """
    from traindx_tools.on_data.readers import format_of

    told = []
    for a in artifacts:
        form = None
        if a.note.startswith("refused") and "://" not in a.path:
            with suppress(OSError):
                form = format_of(Path(a.path))
        told.append(a if form is None else Artifact(a.path, form, note="data: `traindx data` tells what it holds"))
    return tuple(told)


def _shown(read: FileRead, root: Path) -> FileRead:
    base = root.resolve()
    file = Path(read.file).resolve()
    return replace(read, file=str(file.relative_to(base))) if file.is_relative_to(base) else read


def _read_by(finding: Finding, place: str | None) -> Finding:
    """The finding with the line of the program that read its file."""
    if place is None:
        return finding
    return replace(finding, statement=f"{finding.statement} (read by the run at {place})",
                   measured={**finding.measured, "read_by": place})


def _any_data(paths: Iterable[str]) -> bool:
    """Whether there is a file that a reader of data knows: most runs hold none, and pay nothing."""
    from traindx_tools.on_data.readers import format_of
    from traindx_tools.on_data.readers.folders import PICTURES, SOUNDS

    for path in paths:
        try:
            if os.path.isdir(path) or Path(path).suffix.lower() in PICTURES | SOUNDS:
                return True
            if format_of(Path(path)) not in (None, "json") or Path(path).suffix.lower() == ".geojson":
                return True
        except OSError:
            continue
    return False


def _outputs(parts: Sequence[Run]) -> set[str]:
    """Files in which the readers of logs found metrics or errors."""
    names = {s.source for p in parts for s in p.series} | {e.source for p in parts for e in p.errors}
    return {os.path.realpath(n) for n in names if "://" not in n}


def _constants(code: Sequence[Path]) -> Iterator[tuple[str, str, Any]]:
    """Whole numbers that the code names, VOCAB_SIZE = 50257, num_classes=10, and what it reads files and dates as."""
    for file in code:
        yield from _dtypes_read(file)
        for node in ast.walk(tree) if (tree := parsed(file)) is not None else ():
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, int)
            ):
                yield from ((file.name, t.id, node.value.value) for t in node.targets if isinstance(t, ast.Name))
            elif (
                isinstance(node, ast.keyword)
                and node.arg
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, int)
            ):
                yield file.name, node.arg, node.value.value
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _DAY_FIRST.search(node.value):
                yield file.name, "dayfirst", True


_DAY_FIRST = re.compile(r"%d\W{1,2}%[mbB]")
"""A format of dates that begins with the day."""


def _dtypes_read(file: Path) -> Iterator[tuple[str, str, str]]:
    """The dtypes of numpy with which files without a header are read."""
    tree = parsed(file)
    for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call)) if tree is not None else ():
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("memmap", "fromfile"):
            continue
        modes = [a.value for a in (*call.args[2:3], *(k.value for k in call.keywords if k.arg == "mode"))
                 if isinstance(a, ast.Constant)]
        if not any(str(m).startswith("w") for m in modes):
            for dtype in (*call.args[1:2], *(k.value for k in call.keywords if k.arg == "dtype")):
                yield f"{file.name}:{call.lineno}", "dtype", ast.unparse(dtype).strip("'\"")
