"""The failed run as it was, kept before a new run may write over its files."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from traindx.effect import Level
from traindx.turn import Turn
from traindx.two_runs import Curve
from traindx.verify import NewRun
from traindx.workspace import SCRATCH
from traindx_tools.finding import Finding


def artifact_files(turn: Turn) -> list[Path]:
    """The artifacts that are there as files or folders; where none was named, all of the workspace but its scratch."""
    found = []
    for entry in turn.session.artifacts.everything:
        with contextlib.suppress(OSError, ValueError):  # an entry may be a text, not a path
            path = turn.workspace / entry
            if path.exists():
                found.append(path)
    return found or sorted(p for p in turn.workspace.iterdir()
                           if p.name != SCRATCH.parts[0] and not p.name.startswith("."))


def remember_old_run(turn: Turn) -> None:
    """Read the failed run once, and note what its files hold."""
    key = _key(turn, len(turn.session.attempts) + 1)
    if turn.journal.finished(key) is None:
        paths = artifact_files(turn)
        marks = {str(p): [p.stat().st_size, sha256(p)] for p in paths if p.is_file()}
        turn.journal.finish(key, run=run_to_json(turn.examine(paths)), files=marks)


def old_run(turn: Turn) -> NewRun:
    """The failed run that the last fix was made for."""
    return run_from_json(_kept(turn).get("run", {}))


def rewritten(turn: Turn) -> list[Path]:
    """The old run's own files where the new run wrote them anew; one that only grew still holds the old run."""
    out = []
    for name, (size, digest) in _kept(turn).get("files", {}).items():
        path = Path(name)
        if path.is_file() and path.suffix != ".py" and digest not in (sha256(path), sha256(path, size)):
            out.append(path)
    return out


def rewritten_in(turn: Turn, copy: Path) -> list[Path]:
    """The same of a run in a copy of the workspace."""
    out = []
    for name, (size, digest) in _kept(turn).get("files", {}).items():
        if not Path(name).is_relative_to(turn.workspace):
            continue
        path = copy / Path(name).relative_to(turn.workspace)
        if path.is_file() and path.suffix != ".py" and digest not in (sha256(path), sha256(path, size)):
            out.append(path)
    return out


def _key(turn: Turn, attempt: int) -> str:
    return f"old-run-{attempt}"


def _kept(turn: Turn) -> Mapping[str, Any]:
    return turn.journal.finished(_key(turn, len(turn.session.attempts))) or {}


def sha256(path: Path, first: int | None = None) -> str:
    """The hash of a file, or of its first bytes."""
    digest = hashlib.sha256()
    left = path.stat().st_size if first is None else first
    with path.open("rb") as file:
        while left > 0 and (block := file.read(min(left, 2**20))):
            digest.update(block)
            left -= len(block)
    return digest.hexdigest()


def run_to_json(run: NewRun) -> dict[str, Any]:
    """What was read of a run as plain values, for a journal or a cache."""
    return {"findings": [f.to_json() for f in run.findings], "last_step": run.last_step,
            "planned_steps": run.planned_steps, "metrics": {k: str(v) for k, v in run.metrics.items()},
            "levels": {k: v.to_json() for k, v in run.levels.items()},
            "curves": {k: v.to_json() for k, v in run.curves.items()}}


def run_from_json(data: Mapping[str, Any]) -> NewRun:
    """The inverse of `run_to_json`."""
    return NewRun(tuple(Finding.from_json(f) for f in data.get("findings", ())), data.get("last_step"),
                  data.get("planned_steps"), {k: float(v) for k, v in data.get("metrics", {}).items()},
                  {k: Level.from_json(v) for k, v in data.get("levels", {}).items()},
                  {k: Curve.from_json(v) for k, v in data.get("curves", {}).items()})
