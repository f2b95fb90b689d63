"""From names of runs to paths: the files here first, the tracker's library where there are none."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from traindx_tools.errors import BadUsage, UnreadableInput
from traindx_tools.short import attribute, in_short
from traindx_tools.sources import clients, local_files
from traindx_tools.sources.names import TENSORBOARD, named

EVENTS = "tfevents"
"""Part of the name of each event file, by which TensorBoard itself knows them."""
MAX_FOLDERS = 20_000
"""Folders that are searched for the first event file."""


FETCHED = "traindx-fetched-"
"""How the folder begins that a fetched run lies in."""


def is_fetched(folder: Path) -> bool:
    """Whether a folder is that of a fetched run, or lies in one: nobody's project."""
    return any(part.startswith(FETCHED) for part in Path(os.path.abspath(folder)).parts)

LONGEST_NAME, LONGEST_PATH = 255, 4096
"""Bytes: NAME_MAX and PATH_MAX of Linux (limits.h)."""


def resolved(paths: Sequence[str | Path] | str | Path) -> tuple[str, ...]:
    """The paths, with each name of a run replaced by its files. Paths stay as they are: calling it twice is no harm.

    What is fetched lies in a temporary folder that goes when the process ends. Raises BadUsage, MissingExtra,
    UnreadableInput.
    """
    return tuple(place for path in as_paths(paths) for place in _places(str(path)))


def as_paths(given: object) -> tuple[str | Path, ...]:
    """What was given as one path or several. Raises BadUsage where it is something else, such as an array of losses."""
    array = isinstance(given, (Mapping, bytes, str)) or attribute(given, "dtype") is not None
    parts = tuple(given) if isinstance(given, Iterable) and not array else (given,)
    odd = [p for p in parts if not isinstance(p, (str, Path))]
    if odd:
        raise BadUsage(f"expected the path of a log, a folder or a script, or several, got {in_short(odd[0])}: give "
                       'values under their names, as in diagnose({"loss": [2.3, 1.9]}), or the path of a file that '
                       "holds them")
    paths = tuple(p for p in parts if isinstance(p, (str, Path)))
    for path in paths:
        _can_be_one(str(path))
    return paths


def _can_be_one(path: str) -> None:
    """Raises BadUsage for a text that no system takes for a path: a log's own text, most likely."""
    longest = max(map(len, path.encode("utf-8", "surrogateescape").split(b"/")))
    address = "://" in path
    if "\0" in path or (not address and (longest > LONGEST_NAME or len(path) > LONGEST_PATH)):
        what = "a NUL byte" if "\0" in path else "a name that is too long"
        raise BadUsage(f"expected the path of a log, a folder or a script, got {in_short(path)}, with {what}: give the "
                       'path of a file, or the text of a log as `stdin=text.encode()` with the path "-"')


def _places(path: str) -> list[str]:
    run = named(path)
    if run is None:
        return [path]
    if run.tracker == TENSORBOARD:
        if not os.path.isdir(run.run):
            raise UnreadableInput(f"{path!r}: there is no folder {run.run!r}. Give the one that `tensorboard --logdir` "
                                  "is given.")
        _require_events(path, run.run)
        return [run.run]
    here = local_files.found(run)
    if here:
        return here
    folder = Path(tempfile.mkdtemp(prefix=FETCHED))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        return [str(clients.fetched(run, folder))]
    except UnreadableInput as refused:
        raise UnreadableInput(f"{refused}. Nor were files of it found here: {local_files.looked_in(run)}") from refused


def _require_events(path: str, folder: str) -> None:
    """Raises UnreadableInput where no event file is below the folder. Links to folders are not followed."""
    searched = 0
    for searched, (_, _, files) in enumerate(os.walk(folder), 1):
        if any(EVENTS in name for name in files):
            return
        if searched >= MAX_FOLDERS:
            break
    raise UnreadableInput(f"{path!r}: none of the {searched:,} folders below {folder!r} that were searched holds an "
                          f"event file (*{EVENTS}*). Give the one that `tensorboard --logdir` is given, or the path "
                          "alone for other files.")
