"""The runs among what was read, each as a reading of its own: several in one file are cut apart at their lines.

A file that holds one run and is read together with a file that holds several belongs to the last one: a table of
metrics is written anew at each start, a console log is appended to. Code and configuration belong to all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.groups_of_files import by_itself, with_groups_of
from traindx_tools.on_logs.plain_text import is_binary
from traindx_tools.on_logs.readers.text_log import lines_of
from traindx_tools.on_logs.reading import Reading, joined, read_parts, read_source
from traindx_tools.on_logs.restarts import MANY_RUNS, Segment, segments
from traindx_tools.on_logs.run import ErrorEvent, Run, Series
from traindx_tools.on_logs.several_runs import apart_as_folders
from traindx_tools.on_logs.stores import STORED, StoredRun

MOST_BYTES = 256 * 2**20
"""Bytes of a file that is cut apart; a larger one is read as one run."""
WHOLE = frozenset({"tensorboard", "hf_trainer_state", "traindx_live", "wandb", *STORED})
"""Formats whose files hold one run, or numbers that are no lines."""


@dataclass(frozen=True, eq=False)
class OneRun:
    """One of the runs that were read. `number` counts from 1."""

    number: int
    of: int
    reading: Reading
    file: str = ""
    """The file that holds several runs; "" where there is one run alone."""
    start: int = 1
    end: int | None = None
    resumes: tuple[int, ...] = ()
    cells: str = ""
    """Of a notebook: the cells below which it stands, in words ("cell 3 output")."""


def each_run(reading: Reading) -> tuple[OneRun, ...]:
    """Every run, in the order in which they were written, the last `MANY_RUNS` of more; at least one."""
    cut = [_cut(s, p) for s, p in zip(reading.sources, reading.parts, strict=True)]
    count = max((len(c) for c in cut), default=1)
    if count < 2:
        resumes = tuple(r for c in cut for s in c for r in s.resumes)
        return (OneRun(1, 1, reading, resumes=resumes),)
    main = next(i for i, c in enumerate(cut) if len(c) == count)
    return tuple(OneRun(k + 1, count, _reading(reading, cut, k, count), reading.sources[main].name,
                        cut[main][k].start, cut[main][k].end, cut[main][k].resumes)
                 for k in range(max(0, count - MANY_RUNS), count))


def run_of_each_file(reading: Reading, files: Sequence[str], job: frozenset[str] = frozenset()) -> tuple[OneRun, ...]:
    """Files of several runs, each with what lies in its folder or has its name alone; the newest is the last one.

    `job`: files of the ranks of one job, which stay together wherever they lie.
    """
    names = [s.name for s in reading.sources]
    first = [names.index(f) for f in files if f in names]
    kept = sorted({*first, *_alone(reading, names, first, job)}, key=lambda i: _age(reading.sources[i]))
    groups = {i: [i] for i in kept}
    last = kept[-1]
    for i, part in enumerate(reading.parts):
        if i not in groups:
            of_job = [k for k in kept if names[i] in job and names[k] in job]
            for home in of_job or _homes(names, i, kept) or ([last] if _is_of_a_run(part) else kept):
                groups[home].append(i)
    return tuple(OneRun(k + 1, len(kept), reading.only(sorted(groups[i])), names[i]) for k, i in enumerate(kept))


def _homes(names: Sequence[str], i: int, kept: Sequence[int]) -> list[int]:
    """The one file of a run beside which another lies, or whose name it has."""
    path = PurePath(names[i])
    named = [k for k in kept if PurePath(names[k]).stem == path.stem]
    beside = [k for k in kept if PurePath(names[k]).parent == path.parent]
    around = [k for k in kept if PurePath(names[k]).parent.name and path.is_relative_to(PurePath(names[k]).parent)]
    return next((same for same in ([k for k in named if k in beside], beside, named, around) if len(same) == 1), [])


def _alone(reading: Reading, names: Sequence[str], kept: Sequence[int], job: frozenset[str]) -> list[int]:
    """Files in a folder of their own beside those of the runs, the first of each: they tell of another run."""
    folders = [PurePath(names[k]).parent for k in kept]
    found: dict[PurePath, int] = {}
    for i, part in enumerate(reading.parts):
        folder = PurePath(names[i]).parent
        if any(names[i] in job and names[k] in job for k in (*kept, *found.values())):
            continue
        if i not in kept and (
                part.loss is not None or part.errors) and not _homes(names, i, kept) and all(
                apart_as_folders(folder, other) for other in folders):  # fmt: skip
            found.setdefault(folder, i)
    return list(found.values())


def _age(source: Source) -> tuple[float, list[tuple[int, str]]]:
    """When a file was last written, in whole seconds, then its name with the numbers in it as numbers."""
    written = source.written if isinstance(source, StoredRun) else 0.0
    with suppress(OSError):
        written = float(int(source.local.stat().st_mtime)) if source.local is not None else written
    return written, [(int(p) if p.isdigit() else -1, p) for p in re.split(r"(\d+)", source.name)]


def read_last_run(paths: Sequence[str | Path] | str | Path, *, names: Mapping[str, str] | None = None,
                  lines: Sequence[str] = ()) -> Run:
    """Reads the run that was written last, where files hold several; arguments and errors as of `read_run`."""
    return joined(each_run(read_parts(paths, names=names, lines=lines))[-1].reading)


def _cut(source: Source, part: Run) -> tuple[Segment, ...]:
    if not part.series or (part.artifacts and part.artifacts[0].format in WHOLE):
        return (Segment(1, None),)
    with suppress(OSError):
        if not is_binary(source.head) and source.size <= MOST_BYTES:
            return segments(by_itself(part), lambda: lines_of(source), source.sections)
    return (Segment(1, None),)


def _reading(reading: Reading, cut: Sequence[Sequence[Segment]], run: int, count: int) -> Reading:
    """What belongs to one run, the last one being number `count - 1`."""
    kept: list[int] = []
    sources, parts = list(reading.sources), list(reading.parts)
    for i, pieces in enumerate(cut):
        at = run - (count - len(pieces))
        if len(pieces) > 1 and at >= 0:
            sources[i], parts[i] = _piece(reading.sources[i], reading.parts[i], pieces[at])
        if at >= 0 or not _is_of_a_run(parts[i]):
            kept.append(i)
    every = [s if len(c) > 1 else old for s, c, old in zip(sources, cut, reading.found.sources, strict=True)]
    return Reading(replace(reading.found, sources=every), tuple(sources), tuple(parts)).only(kept)


def _is_of_a_run(part: Run) -> bool:
    """Whether a file tells of one run: code and configuration are those of all."""
    return bool(part.series or part.errors or part.notes)


def _piece(source: Source, whole: Run, segment: Segment) -> tuple[Source, Run]:
    """The lines of one run as a source of its own, and what they tell, with the lines of the whole file."""
    with source.text() as stream:
        lines = stream.read(MOST_BYTES).split(b"\n")
    body, shift = lines[segment.start - 1 : segment.end], segment.start - 1
    if segment.start > 1 and _is_header(lines[0], lines[1:2], body):
        body, shift = [lines[0], *body], shift - 1
    alone = Source(source.name, data=b"\n".join(body), above=shift, forms=source.forms)
    return alone, shifted(with_groups_of(read_source(alone), whole), shift)


def _is_header(first: bytes, second: Sequence[bytes], body: Sequence[bytes]) -> bool:
    """Whether the first line of a table has to stand above lines from its midst."""
    letters = any(c in b"abcdefghijklmnopqrstuvwxyz" for c in first.lower())
    rows = [*second, *body[:1]]
    delimiter = next((d for d in (b",", b"\t", b";") if d in first), None)
    return delimiter is not None and letters and bool(body) and body[0] != first and not first.lstrip().startswith(
        (b"{", b"[")) and all(r.count(delimiter) == first.count(delimiter) for r in rows)


def shifted(run: Run, by: int) -> Run:
    """A run whose lines are counted from another one on."""
    return run if not by else replace(
        run, series=tuple(_moved(s, by) for s in run.series), errors=tuple(_moved_error(e, by) for e in run.errors),
        notes=tuple(replace(n, line=n.line + by) for n in run.notes))


def _moved(series: Series, by: int) -> Series:
    return replace(series, line=series.line + by)


def _moved_error(error: ErrorEvent, by: int) -> ErrorEvent:
    last = error.last_line + by if error.last_line else 0
    return replace(error, line=error.line + by, end_line=error.end_line + by, last_line=last,
                   cause=None if error.cause is None else _moved_error(error.cause, by))
