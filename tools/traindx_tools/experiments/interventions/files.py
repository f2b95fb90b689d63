"""Which data and checkpoints the run finds: files and rows left out or alone, those of another run in their place."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.interventions.intervention import ANY, BEFORE, INTEGER, Intervention, Setting
from traindx_tools.experiments.interventions.writing.listed import with_lists_without
from traindx_tools.experiments.interventions.writing.rows import with_rows
from traindx_tools.experiments.place import Prepared

MOST_FILES = 100_000
"""Files of a workspace that are looked through."""
MOST_BYTES = 4 * 2**30
"""Bytes of another run's files that are put in place at most."""
Files = Mapping[str, bytes | None]
"""Changed files by their path in the workspace; None for one that is not there."""
_SKIPPED = frozenset({".git", "__pycache__", ".venv", "venv", "node_modules", "scratch"})


def _below(folder: Path) -> Iterator[str]:
    """The files below a folder by their path in it, in a stable order, bounded."""
    left = MOST_FILES
    for here, inside, names in os.walk(folder):
        inside[:] = sorted(d for d in inside if d not in _SKIPPED)
        for name in sorted(names):
            left -= 1
            if left < 0:
                return
            yield os.path.relpath(os.path.join(here, name), folder).replace(os.sep, "/")


def _matching(folder: Path, pattern: str) -> list[str]:
    inside = os.path.relpath(pattern, folder) if os.path.isabs(pattern) else os.path.normpath(pattern)
    found = [n for n in _below(folder) if fnmatch.fnmatchcase(n, inside.replace(os.sep, "/"))]
    if not found:
        raise BadUsage(f"no file below {folder} matches {pattern!r}: a path in it is expected, with wildcards as in "
                       "'data/shard-*.npz'.")
    return found


def _files_left_out(change: Change, command: str, workspace: Path) -> Prepared:
    gone = _matching(workspace, str(change.options["files"]))
    return Prepared(command, files=with_lists_without(workspace, list(_below(workspace)), gone))


def _files_alone(change: Change, command: str, workspace: Path) -> Prepared:
    kept = _matching(workspace, str(change.options["files"]))
    among = change.options.get("among")
    if among is not None:
        others = _matching(workspace, str(among))
    else:  # those of the same folder and kind
        kinds = {(os.path.dirname(k), os.path.splitext(k)[1]) for k in kept}
        others = [n for n in _below(workspace) if (os.path.dirname(n), os.path.splitext(n)[1]) in kinds]
    gone = [n for n in others if n not in set(kept)]
    if not gone:
        raise BadUsage(f"{', '.join(kept[:4])} is alone already: no other file of its folder has its kind; among=GLOB "
                       "says which are left out.")
    return Prepared(command, files=with_lists_without(workspace, list(_below(workspace)), gone))


def lists_of_both(workspace: Path, one: Files, other: Files) -> Files | None:
    """The files of two changes that leave files out, where the same lists named some of both; None for other changes.
    """
    names = list(_below(workspace))

    def listed(files: Files) -> bool:
        gone = [n for n, data in files.items() if data is None]
        made = with_lists_without(workspace, names, gone)
        return all(n in made and made[n] == data for n, data in files.items() if n in both)

    both = set(one) & set(other)
    if not (listed(one) and listed(other)):
        return None
    every = {**one, **other}
    gone = [n for n, data in every.items() if data is None]
    return {**every, **with_lists_without(workspace, names, gone)}


def _rows(change: Change, command: str, workspace: Path) -> Prepared:
    alone = change.name == "rows-alone"
    first, last = int(change.options["from"]), int(change.options["to"])
    if last < first:
        raise BadUsage(f"from={first} lies behind to={last}.")
    made: dict[str, bytes | None] = {}
    for name in _matching(workspace, str(change.options["file"])):
        def keep(rows: int, name: str = name) -> list[int]:
            if first >= rows:
                raise BadUsage(f"{name} has {rows} rows (0 to {rows - 1}): from={first} is beyond.")
            kept = [i for i in range(rows) if (first <= i <= last) is alone]
            if not kept:
                raise BadUsage(f"{name} has {rows} rows, and none would be left.")
            return kept

        made[name] = with_rows(workspace / name, keep)
    return Prepared(command, files=made)


def _rows_sorted(change: Change, command: str, workspace: Path) -> Prepared:
    """The rows of a file in the order of one of its columns."""
    made: dict[str, bytes | None] = {}
    for name in _matching(workspace, str(change.options["file"])):
        places = _sorted_places(workspace / name, name, str(change.options["by"]), str(change.options["how"]))

        def keep(rows: int, places: list[int] = places, name: str = name) -> list[int]:
            if rows != len(places):
                raise BadUsage(f"{name} has {rows} rows, and {len(places)} of them are read as data: none is moved.")
            return places

        made[name] = with_rows(workspace / name, keep)
    return Prepared(command, files=made)


def _sorted_places(path: Path, name: str, by: str, how: str) -> list[int]:
    """Where each row lies now. Raises BadUsage for a file without such a column, or one that sorts nothing."""
    from traindx_tools.on_data.other_order import ways_to_sort
    from traindx_tools.on_data.readers import format_of, read_file
    from traindx_tools.on_data.readers.bounds import Bounds

    form = format_of(path)
    shards = read_file(path, name, form, Bounds()) if form is not None else ()
    shard = next((s for s in shards if by in s.columns), None)
    if shard is None:
        known = ", ".join([c for s in shards for c in s.columns][:12])
        raise BadUsage(f"{name} has no column {by!r}: {f'it has {known}' if known else 'it is no table that is read'}.")
    ways = ways_to_sort(shard.columns[by], shard.total)
    if how not in ways:
        possible = f"possible is {', '.join(ways)}" if ways else "it tells too few rows apart, or has empty cells"
        raise BadUsage(f"the rows of {name} cannot be sorted how={how} by {by}: {possible}.")
    places: list[int] = ways[how].tolist()
    return places


def _data_from(change: Change, command: str, workspace: Path) -> Prepared:
    folder = Path(str(change.options["folder"]))
    folder = folder if folder.is_absolute() else workspace / folder
    if not folder.is_dir():
        raise BadUsage(f"{folder} is no folder: that of the other run is expected.")
    pattern, made, left = str(change.options["files"]), {}, MOST_BYTES
    for name in _matching(folder, pattern):
        data = _read(folder / name)
        left -= len(data)
        if left < 0:
            raise BadUsage(f"the files that match {pattern!r} have more than {MOST_BYTES / 2**30:.0f} GiB together.")
        if not (workspace / name).is_file() or _read(workspace / name) != data:
            made[name] = data
    if not made:
        raise BadUsage(f"the files of {folder} that match {pattern!r} are those of this run, byte for byte.")
    return Prepared(command, files=made)


def _checkpoint_from(change: Change, command: str, workspace: Path) -> Prepared:
    source = Path(str(change.options["file"]))
    source = source if source.is_absolute() else workspace / source
    if not source.is_file():
        raise BadUsage(f"{source} is no file: the checkpoint of the other run is expected.")
    target = str(change.options["place"])
    if Path(target).is_absolute() or ".." in Path(target).parts:
        raise BadUsage(f"place={target} lies outside of the workspace: the path in it from which this run loads is "
                       "expected.")
    data = _read(source)
    if (workspace / target).is_file() and _read(workspace / target) == data:
        raise BadUsage(f"{target} is that checkpoint already, byte for byte.")
    return Prepared(command, files={target: data})


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadUsage(f"{path} cannot be read: {error.strerror}.") from error


_FILES = Setting("files", "path in the workspace, with wildcards: `data/shard-*.npz`", required=True)
_ROWS = (Setting("file", "path of the data file in the workspace, with wildcards", required=True),
         Setting("from", "the first row, from 0, without a header", INTEGER, required=True, least=0),
         Setting("to", "the last row, included", INTEGER, required=True, least=0))

INTERVENTIONS = (
    Intervention(
        "files-left-out", "data files are not there",
        changes="The files that match are not in the copy in which the run happens, and no list there names them "
                "(YAML, JSON, TOML, Python, a file of one name a line).",
        keeps="All other files, and the user's own.",
        shows="Where the symptom goes, it comes from one of these files.",
        cannot_tell="What is wrong in them. A program that opens a file by a name outside of a list ends with an "
                    "error.",
        holds=BEFORE, frameworks=(ANY,), horizon=30, options=(_FILES,), preparation=_files_left_out),
    Intervention(
        "files-alone", "data files are the only ones of their kind",
        changes="Other files of the same folder and suffix (or those that match `among`) are not in the copy, and no "
                "list there names them.",
        keeps="All other files, and the user's own.",
        shows="Where the symptom stays, these files are enough for it.",
        cannot_tell="What is wrong in them. A program that opens a file by a name outside of a list ends with an "
                    "error.",
        holds=BEFORE, frameworks=(ANY,), horizon=30,
        options=(_FILES, Setting("among", "those of which the others are left out, with wildcards")),
        preparation=_files_alone),
    Intervention(
        "rows-left-out", "rows of a data file are left out",
        changes="In the copy the file (CSV, TSV, JSON lines, JSON, text, npy, npz, Parquet; also gzip) has no rows "
                "`from` to `to`.",
        keeps="The other rows in their order and form; the header; arrays of an npz with another number of rows.",
        shows="Where the symptom goes, it comes from these rows; halving the range finds them.",
        cannot_tell="What is wrong in them. Files that go with it row by row (labels apart) need the same change: give "
                    "a pattern that matches both.",
        holds=BEFORE, frameworks=(ANY,), horizon=30, options=_ROWS, preparation=_rows),
    Intervention(
        "rows-alone", "rows of a data file are the only ones",
        changes="In the copy the file holds rows `from` to `to` alone.",
        keeps="Their order and form; the header.",
        shows="Where the symptom stays, these rows are enough for it.",
        cannot_tell="Whether few rows are learned by heart: a falling loss proves nothing.",
        holds=BEFORE, frameworks=(ANY,), horizon=30, options=_ROWS, preparation=_rows),
    Intervention(
        "rows-sorted", "rows of a data file lie in the order of a column",
        changes="In the copy the rows of the file are sorted by the column `by`: `how=rising` or `falling`, as `text` "
                "(1, 10, 2), or texts by the `numbers` in them (1, 2, 10).",
        keeps="Each row as it is, the header, all other files.",
        shows="Where the symptom goes, rows of this file are joined with others by their places, and lay in another "
              "order.",
        cannot_tell="Where a program joins by a key, or sorts by itself, nothing changes.",
        holds=BEFORE, frameworks=(ANY,), horizon=30,
        options=(Setting("file", "of the rows, a path or a pattern", required=True),
                 Setting("by", "the column", required=True),
                 Setting("how", "the order", required=True, choices=("rising", "falling", "text", "numbers"))),
        preparation=_rows_sorted),
    Intervention(
        "data-from", "files of another run's folder in place of one's own",
        changes="Files of `folder` that match `files` stand in the copy under the same path.",
        keeps="Program, command and all other files.",
        shows="Where the symptom comes or goes with the files, they carry the difference between the runs.",
        cannot_tell="Which of the files, and what in them.",
        holds=BEFORE, frameworks=(ANY,), horizon=30,
        options=(Setting("folder", "that of the other run", required=True),
                 Setting("files", "path in it, with wildcards: `data/*`", required=True)),
        preparation=_data_from),
    Intervention(
        "checkpoint-from", "a checkpoint of another run in place of one's own",
        changes="The copy holds `file` at `place`.",
        keeps="Program, command and all other files.",
        shows="Where the symptom comes or goes with the checkpoint, it carries it.",
        cannot_tell="Which tensor: `traindx weights A B` compares them. A program that does not load from `place` runs "
                    "as before.",
        holds=BEFORE, frameworks=(ANY,), horizon=20,
        options=(Setting("file", "the checkpoint of the other run", required=True),
                 Setting("place", "path in the workspace from which this run loads", required=True)),
        preparation=_checkpoint_from),
)
