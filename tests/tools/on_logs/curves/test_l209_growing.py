"""A term that outweighs the task because it grows is no cause: the optimizer does not work for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.finding import Bearing
from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.curves import l209_component_domination
from traindx_tools.on_logs.run import Run


def log(tmp_path: Path, commit: list[float]) -> Run:
    lines = [f"step {50 * i} recon 0.9{i} commit_loss {c:.4f}" for i, c in enumerate(commit, 1)]
    (tmp_path / "log.txt").write_text("\n".join(lines) + "\n")
    return read_run([tmp_path / "log.txt"])


@pytest.mark.parametrize(("commit", "kind", "bearing"), [
    ([40.0, 38.0, 35.0, 34.0, 33.0, 32.0, 31.0, 30.0], "auxiliary", Bearing.SIGN),
    ([0.1, 1.0, 6.0, 12.0, 20.0, 30.0, 40.0, 45.0], "growing", Bearing.COMPANION),
])
def test_a_growing_term_is_told_apart(tmp_path: Path, commit: list[float], kind: str, bearing: Bearing) -> None:
    found = list(l209_component_domination.check(log(tmp_path, commit)))
    assert [(f.measured["kind"], f.bearing) for f in found] == [(kind, bearing)]


def test_a_small_term_is_left_alone(tmp_path: Path) -> None:
    assert list(l209_component_domination.check(log(tmp_path, [0.1, 0.2, 0.3, 0.4, 0.4, 0.4, 0.4, 0.4]))) == []
