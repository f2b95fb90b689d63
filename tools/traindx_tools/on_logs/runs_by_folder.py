"""Whether logs that were read together are those of several runs because each has a folder of its own.

Runs of different programs share no steps and often no names, so that their curves cannot be compared. What tells them
apart is where they lie: folders side by side, each with a log of a whole training run from its beginning, under the
same name in each or beside a program of its own. A file that goes on where another ended is of the same run, so is a
copy, and a folder of validation logs beside one of training logs.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from pathlib import Path, PurePath

from traindx_tools.finding import Finding
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.each_run import WHOLE
from traindx_tools.on_logs.readers.names import identify
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.on_logs.several_runs import ENOUGH, SHOWN, apart_as_folders, differ, positions_shared

BEGINS = 0.1
"""Share of a log's last step before which its first record lies: it tells of a run from its beginning."""


def files_of_folders(sources: Sequence[Source], parts: Sequence[Run], job: Container[str] = ()) -> tuple[str, ...]:
    """The longest log of each folder that holds a run of its own; none where there is a single run.

    `job`: files of the ranks of one job, which are one run wherever they lie.
    """
    longest: dict[object, tuple[Source, Series]] = {}
    for source, part in zip(sources, parts, strict=True):
        loss = whole(source, part)
        if loss is None:
            continue
        home: object = "job" if source.name in job else PurePath(source.name).parent
        if home not in longest or len(loss) > len(longest[home][1]):
            longest[home] = source, loss
    told = list(longest.values())
    return tuple(one.name for one, loss in told
                 if any(one is not other and _apart(one, loss, other, its) for other, its in told))


def not_of_others(findings: Iterable[Finding], file: str, files: Sequence[str]) -> tuple[Finding, ...]:
    """Without what was seen in the folders of other runs. `file`: the log of this one. `files`: those of all."""
    own = Path(file).parent.resolve()
    others = {Path(f).parent.resolve() for f in files} - {own}
    return tuple(f for f in findings if f.where.file is None
                 or not any(Path(f.where.file).resolve().is_relative_to(o) for o in others))


def told_by_folder(files: Sequence[str]) -> str:
    """A sentence for a person that names the files."""
    named = ", ".join(files[:SHOWN]) + (f" and {len(files) - SHOWN} more" if len(files) > SHOWN else "")
    return (f"these files look like several runs, each in a folder of its own and from its beginning: {named}. "
            "Each was judged by itself; give the path of one run's file or folder to see that one alone")


def whole(source: Source, part: Run) -> Series | None:
    """The training loss of a log that begins with its run, None for any other file."""
    loss = part.loss
    if loss is None or len(loss) < ENOUGH or (part.artifacts and part.artifacts[0].format in WHOLE):
        return None
    folder = PurePath(source.name).parent.name
    if (identify(loss.original).group or identify(f"{folder}/loss").group or "train") != "train":
        return None
    first, last = float(loss.position[0]), float(loss.position[-1])
    return loss if loss.unit == "line" or first <= max(1.0, BEGINS * last, _stride(loss)) else None


def _stride(loss: Series) -> float:
    return float(loss.position[1] - loss.position[0])


def _apart(one: Source, loss: Series, other: Source, its: Series) -> bool:
    here, there = PurePath(one.name), PurePath(other.name)
    if not apart_as_folders(here.parent, there.parent):
        return False
    if positions_shared(loss, its) and not differ(loss, its):
        return False
    return here.name == there.name or (_has_a_program(one) and _has_a_program(other))


def _has_a_program(source: Source) -> bool:
    """Whether a Python file lies beside it."""
    with suppress(OSError):
        folder = source.local.parent if source.local is not None else None
        return folder is not None and any(Path(folder).glob("*.py"))
    return False
