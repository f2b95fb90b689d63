"""Where the files of a tracker's run lie on this machine, if they do."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlparse

from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.stores import databases, mlflow_files, sqlite
from traindx_tools.sources.names import MLFLOW, WANDB, Named

MOST_FOLDERS = 20_000
"""Folders below the current one in which a `wandb` folder is looked for."""
_SKIPPED = frozenset({"node_modules", "venv", "site-packages", "__pycache__"})


def found(run: Named) -> list[str]:
    """The paths of a run's files, none where they are not here."""
    if run.tracker == WANDB:
        return [str(p) for p in _of_wandb(run.run)]
    return _of_mlflow(run.run) if run.tracker == MLFLOW else []


def looked_in(run: Named) -> str:
    """Where a run's files were looked for, in words, with the variable that names another place."""
    if run.tracker == MLFLOW:
        places, named_by = [str(s) for s in _mlflow_stores()], "MLFLOW_TRACKING_URI"
    else:
        places, named_by = ["wandb and .wandb here and below"], "WANDB_DIR"
        places = [*([os.environ[named_by]] if os.environ.get(named_by) else []), *places]
    there = [p if os.path.exists(p) or " " in p else f"{p} (not there)" for p in dict.fromkeys(places)]
    other = "" if os.environ.get(named_by) else f"; {named_by} names another place"
    return f"looked in {', '.join(there)} of {os.getcwd()}{other}"


def _of_wandb(run: str) -> list[Path]:
    folders: dict[str, Path] = {}
    for root in _wandb_roots():
        with suppress(OSError):
            for folder in sorted(root.iterdir()):
                if folder.name.endswith(f"-{run}") and (folder / f"run-{run}.wandb").is_file():
                    folders.setdefault(os.path.realpath(folder), folder)
    return list(folders.values())


def _wandb_roots() -> Iterator[Path]:
    given = os.environ.get("WANDB_DIR")
    if given:
        yield from (Path(given) / "wandb", Path(given) / ".wandb", Path(given))
    yield from (Path("wandb"), Path(".wandb"))
    for count, (here, folders, _) in enumerate(os.walk(".")):
        if count >= MOST_FOLDERS:
            return
        folders[:] = sorted(f for f in folders if f not in _SKIPPED and not f.startswith("."))
        if os.path.basename(here) == "wandb":
            folders.clear()
            yield Path(os.path.normpath(here))


def _of_mlflow(run: str) -> list[str]:
    """The run with that id, else those of the first store with that name: several runs may bear one."""
    mlflow_files.forget()
    return _by_id(run) or next((found for s in _mlflow_stores() if (found := _by_name(s, run))), [])


def _by_name(store: Path, run: str) -> list[str]:
    with suppress(OSError, sqlite.Refused, sqlite3.Error, ValueError):
        if store.is_dir():
            return [str(f) for experiment in sorted(store.iterdir()) for f in _folders(experiment)
                    if mlflow_files.name_of(f) == run and not mlflow_files.is_deleted(f)]
        if store.is_file():
            return [f"{store}:{i}" for i in databases.named_in(store, run)]
    return []


def _folders(experiment: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(f for f in experiment.iterdir() if f.is_dir() and not f.is_symlink())
    return []


def _by_id(run: str) -> list[str]:
    for store in _mlflow_stores():
        if store.is_dir():
            with suppress(OSError):
                for experiment in sorted(store.iterdir()):
                    if mlflow_files.is_run(experiment / run):
                        return [str(experiment / run)]
        elif store.is_file() and _in_database(store, run):
            return [f"{store}:{run}"]
    return []


def _mlflow_stores() -> Iterator[Path]:
    given = os.environ.get("MLFLOW_TRACKING_URI", "")
    scheme = urlparse(given).scheme
    if scheme == "file":
        yield Path(unquote(urlparse(given).path))
    elif scheme == "sqlite":
        yield Path(given.partition("///")[2])
    elif given and not scheme:
        yield Path(given)
    yield from (Path("mlruns"), Path("mlflow.db"))


def _in_database(path: Path, run: str) -> bool:
    with suppress(OSError, sqlite.Refused, sqlite3.Error, ValueError):
        told = databases.runs_in(Source(f"{path}:{run}", local=path))
        return bool(told and told[0])
    return False
