"""A diagnosis in a process that is still watched reads what was recorded, and says what is not in yet."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from traindx.diagnose import diagnose
from traindx.still_watched import END
from traindx_tools.live.session import close_session, open_session
from traindx_tools.live.settings import Settings
from traindx_tools.live.start import end_here
from traindx_tools.on_torch.attachment import attach, attached, detach


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    close_session()
    detach()


def trained(folder: Path) -> None:
    attach(open_session(Settings(str(folder), ("always",))))
    torch.manual_seed(0)
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(30):
        optimizer.zero_grad()
        net(torch.randn(4, 3)).pow(2).mean().backward()
        optimizer.step()


@pytest.mark.slow
def test_all_steps_are_read_and_what_is_missing_is_said(tmp_path: Path) -> None:
    trained(tmp_path / "run")
    report = diagnose(tmp_path)
    assert max(s.step.max() for s in report.seen.run.series) == 29
    assert END in report.terminal({})
    end_here()
    assert attached() is None
    assert END not in diagnose(tmp_path).terminal({}, verbose=True)


@pytest.mark.slow
def test_another_run_is_not_concerned(tmp_path: Path) -> None:
    trained(tmp_path / "run")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "log.txt").write_text("".join(f"step {i} loss {2 - i / 100}\n" for i in range(60)))
    assert END not in diagnose(tmp_path / "other").terminal({}, verbose=True)


def test_the_named_call_is_there_and_ends_the_watch(tmp_path: Path) -> None:
    code = (f"import traindx_tools.live.attach; from traindx_tools.live.session import watching; "
            f"before = watching() is not None; {END}; print(before, watching())")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == ["True", "None"]
