"""The trackers' own libraries: asked only where a run's files are not here, or a note is to be written."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from traindx_tools.errors import BadUsage, MissingExtra, UnreadableInput
from traindx_tools.sources.local_files import looked_in
from traindx_tools.sources.names import MLFLOW, WANDB, Named

MAX_ROWS = 2_000_000
"""Rows of a history that are fetched."""
_PART = re.compile(r"(?!\.{1,2}$)[^/\\\x00]{1,250}")


def wandb_run(run: Named, *, to_write: bool = False) -> Any:
    """The run as `wandb.Api` gives it. Raises MissingExtra, BadUsage, UnreadableInput."""
    api = _library(run, "wandb", "Api", to_write)
    if not run.project:
        raise BadUsage(f"{run} names a run whose files are not here, or one to write to: name it as "
                       f"wandb:ENTITY/PROJECT/{run.run}.")
    return asked(run, lambda: api().run(run.full))


def mlflow_client(run: Named, *, to_write: bool = False) -> Any:
    """`mlflow.MlflowClient`, of the store that MLFLOW_TRACKING_URI names. Raises MissingExtra, UnreadableInput."""
    client = _library(run, "mlflow", "MlflowClient", to_write)
    return asked(run, client)


def _library(run: Named, module: str, needed: str, to_write: bool) -> Any:
    """A class of a library; a mere folder of that name beside the program is none."""
    try:
        return getattr(importlib.import_module(module), needed)
    except (ImportError, AttributeError) as missing:
        why = ("writing a note to its tracker" if to_write
               else f"no files of it were found ({looked_in(run)}), and asking the tracker")
        raise MissingExtra(f"{run}: {why}", module, module) from missing


def asked(run: Named, question: Callable[[], Any]) -> Any:
    """The answer of a library; whatever it raises is one line of error."""
    try:
        return question()
    except Exception as failed:
        told = " ".join(str(failed).split())[:500]
        raise UnreadableInput(f"{run} could not be reached: {type(failed).__name__}: {told}") from failed


def fetched(run: Named, folder: Path) -> Path:
    """A folder with the run as files that are read like any other. Raises as above."""
    return asked(run, {WANDB: _fetch_wandb, MLFLOW: _fetch_mlflow}[run.tracker](run, folder))  # type: ignore[no-any-return]


def _fetch_wandb(run: Named, folder: Path) -> Callable[[], Path]:
    source = wandb_run(run)

    def fetch() -> Path:
        with (folder / "history.jsonl").open("w", encoding="utf-8") as out:
            for count, row in enumerate(source.scan_history()):
                if count >= MAX_ROWS:
                    break
                out.write(json.dumps({k: v for k, v in row.items() if k != "_runtime"}, default=str) + "\n")
        config = {k: v for k, v in dict(source.config).items() if not k.startswith("_")}
        (folder / "config.json").write_text(json.dumps(config, default=str), encoding="utf-8")
        for file in source.files(["output.log"]):
            if file.name == "output.log":
                file.download(root=str(folder), replace=True)
        return folder

    return fetch


def _fetch_mlflow(run: Named, folder: Path) -> Callable[[], Path]:
    client = mlflow_client(run)

    def fetch() -> Path:
        told = client.get_run(run.run)
        home = folder / run.run
        _write(home, "meta.yaml", f"run_id: {run.run}\nstart_time: {int(told.info.start_time or 0)}\n")
        for name in told.data.metrics:
            rows = client.get_metric_history(run.run, name)
            lines = (f"{int(m.timestamp)} {float(m.value)} {int(m.step)}\n" for m in rows)
            _write(home / "metrics", name, "".join(lines))
        for name, value in told.data.params.items():
            _write(home / "params", name, str(value))
        return home

    return fetch


def _write(folder: Path, name: str, text: str) -> None:
    """A file below a folder; a name that would lead out of it is passed over."""
    parts = name.split("/")
    if all(map(_PART.fullmatch, parts)):
        path = folder.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
