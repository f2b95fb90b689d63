"""A file that goes along with the anomalies of a log: the next check leaves it out of a run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from traindx.next_steps import _associated
from traindx_tools.finding import Bearing, Finding, Location, Severity


def report(folder: Path, file: str | None, training: str | None) -> Any:
    found = Finding("L801", "t", Severity.MEDIUM, Bearing.COMPANION, "s", Location(file="run.log", line=1), "run.log",
                    {"file": file})
    log = folder / "run.log"
    log.write_text("step 1 loss 2\n")
    return SimpleNamespace(seen=SimpleNamespace(findings=(found,), paths=(str(log),)), trial_run=None, made=None,
                           places=SimpleNamespace(root=folder, code=(), training_command=training))


def test_the_run_without_the_file_is_the_next_check(tmp_path: Path) -> None:
    (command,) = _associated(report(tmp_path, "shard_0041.npz", "python train.py"))
    assert command.startswith("traindx experiment ")
    assert command.endswith("--run 'python train.py' --change 'files-left-out:files=*shard_0041.npz'")


@pytest.mark.parametrize(("file", "training"), [(None, "python train.py"), ("shard_0041.npz", None)])
def test_nothing_is_offered_that_cannot_be_typed(file: str | None, training: str | None, tmp_path: Path) -> None:
    assert list(_associated(report(tmp_path, file, training))) == []
