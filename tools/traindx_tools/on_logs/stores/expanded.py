"""What was found on disk, with the stores in it replaced by their runs."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

from traindx_tools.artifact import Artifact
from traindx_tools.on_logs.artifacts import Discovery, Source
from traindx_tools.on_logs.stores import databases, mlflow_files, sqlite

BESIDE = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a database while it is written."""


def expanded(found: Discovery) -> Discovery:
    """The same, where each run of a store is a source of its own; what is no store stays as it is."""
    mlflow_files.forget()
    kept: list[Source] = []
    left_out = list(found.left_out)
    folders: dict[Path, list[tuple[str, Source]]] = {}
    named = {s.name: s for s in found.sources}
    for source in found.sources:
        of = next((named.get(source.name.removesuffix(end)) for end in BESIDE if source.name.endswith(end)), None)
        if of is not None and _is_database(of):
            continue  # a part of the database, read with it
        part = mlflow_files.folder_of(source.local) if source.local is not None else None
        if part is not None:
            folders.setdefault(part[0], []).append((part[1], source))
        elif source.local is None or not mlflow_files.is_experiment(source.local):
            kept += _of_database(source, left_out)
    for folder, files in folders.items():
        if mlflow_files.is_deleted(folder):
            left_out.append(Artifact(str(folder), "mlflow", note="a deleted run: left out"))
        else:
            kept.append(mlflow_files.read(folder, files))
    return replace(found, sources=kept, left_out=left_out)


def _is_database(source: Source) -> bool:
    try:
        return source.local is not None and source.stored_head.startswith(sqlite.MAGIC)
    except OSError:
        return False


def _of_database(source: Source, left_out: list[Artifact]) -> list[Source]:
    try:
        if not _is_database(source):
            return [source]
        told = databases.runs_in(source)
    except (OSError, sqlite.Refused, sqlite3.Error, ValueError, OverflowError) as broken:
        if not isinstance(broken, OSError):
            left_out.append(Artifact(source.name, "sqlite", note=f"refused: an SQLite database that could not be read: "
                                                                 f"{broken}"))
            return []
        return [source]
    if told is None:
        return [source]
    runs, note = told
    if note or not runs:
        left_out.append(Artifact(source.name, "sqlite", note=note or "refused: a tracker's database without a run"))
    return list[Source](runs)


