"""A source that will hold more values than are kept is thinned before these have filled the memory."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.readers import block_source
from traindx_tools.on_logs.readers import recorder as recorder_module
from traindx_tools.on_logs.readers.recorder import Recorder, keeping
from traindx_tools.on_logs.run import Run

ROWS = 30_000
MOST = 20_000


def _table(rows: int) -> str:
    rng = np.random.default_rng(3)
    loss, norm = 2 / (1 + np.arange(rows) / 3_000) + rng.normal(0, 0.02, rows), rng.random(rows)
    loss[rows // 3], loss[rows // 2] = 55.5, math.nan
    return "step,loss,grad_norm\n" + "".join(f"{i},{a!r},{b!r}\n" for i, (a, b) in enumerate(
        zip(loss.tolist(), norm.tolist(), strict=True)))


def _read(folder: Path, text: str, most: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Run, list[int]]:
    """The run, and how many values were held each time that records had to go."""
    held: list[int] = []
    thin = Recorder._thin

    def watched(recorder: Recorder, room: float = recorder_module.ROOM) -> None:
        held.append(recorder.kept)
        thin(recorder, room)

    monkeypatch.setattr(block_source, "CHUNK", 7_500)
    monkeypatch.setattr(recorder_module, "PIECE", 2_000)
    monkeypatch.setattr(Recorder, "_thin", watched)
    (folder / "metrics.csv").write_text(text)
    with keeping(most):
        return read_run([folder / "metrics.csv"]), held


def test_a_long_table_never_fills_the_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, held = _read(tmp_path, _table(ROWS), MOST, monkeypatch)
    assert len(held) == 1
    assert held[0] < 0.4 * MOST
    loss = run.first("loss")
    assert loss is not None
    assert loss.thinned
    assert 55.5 in loss.values
    assert np.isnan(loss.values).sum() == 1
    assert np.diff(loss.step).max() < 40, "an even share of the rest"
    assert 0.2 * MOST < sum(map(len, run.series)) < MOST
    assert "all that stand out" in run.artifacts[0].note


def test_a_table_that_fits_is_kept_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, held = _read(tmp_path, _table(ROWS), 2 * ROWS + 10, monkeypatch)
    assert not held
    assert [len(s) for s in run.series] == [ROWS, ROWS]


def test_a_beginning_that_is_denser_than_the_rest_is_thinned_more_than_it_needed(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes is not known: what stands out is kept even so."""
    run, _ = _read(tmp_path, _table(ROWS // 2) + "# nothing but a remark\n" * 60_000, ROWS + 10, monkeypatch)
    loss = run.first("loss")
    assert loss is not None
    assert ROWS // 20 < len(loss) < ROWS // 2
    assert 55.5 in loss.values
