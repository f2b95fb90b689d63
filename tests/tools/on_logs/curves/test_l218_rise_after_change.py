"""A loss that keeps rising after an announced change, its healthy twins, and broken input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.curves.l218_rise_after_change import check
from traindx_tools.on_logs.judge import judge_run
from traindx_tools.on_logs.run import Run
from traindx_tools.triage import rank

ANNOUNCEMENTS = ("Curriculum: switching to stage 2 (harder sequences)", "entering phase 2 of training",
                 "INFO increasing sequence length from 512 to 2048", "unfreezing encoder layers 6-11")


def log(tmp_path: Path, after: list[float], announcement: str) -> Run:
    before = [2.3 * 0.8**i for i in range(6)]
    lines = [f"Epoch {i + 1}: train_loss={v:.4f} lr=1.0e-03" for i, v in enumerate(before)]
    lines += [announcement] + [f"Epoch {i + 7}: train_loss={v:.4f} lr=1.0e-03" for i, v in enumerate(after)]
    (tmp_path / "log.txt").write_text("\n".join(lines) + "\n")
    return read_run([tmp_path / "log.txt"])


@pytest.mark.parametrize("announcement", ANNOUNCEMENTS)
def test_a_loss_that_keeps_rising_is_seen(tmp_path: Path, announcement: str) -> None:
    run = log(tmp_path, [0.9 * 1.3**i for i in range(8)], announcement)
    found = list(check(run))
    assert len(found) == 1
    assert found[0].measured["announced"]
    assert found[0].where.step == 7
    assert rank(judge_run(run), load_catalog())[0].mode.id == "lr.too-high-after-shift"


@pytest.mark.parametrize("after", [
    [1.4 * 0.85**i for i in range(8)],
    [0.7 * 0.9**i for i in range(8)],
    [0.76, 0.74, 0.77, 0.75, 0.76, 0.74, 0.75, 0.76],
    [0.9, 1.0, 0.8],
])
def test_harder_data_that_are_learned_are_left_alone(tmp_path: Path, after: list[float]) -> None:
    assert list(check(log(tmp_path, after, ANNOUNCEMENTS[0]))) == []


def test_without_an_announcement_it_says_nothing(tmp_path: Path) -> None:
    assert list(check(log(tmp_path, [0.9 * 1.3**i for i in range(8)], "saving to out"))) == []


@pytest.mark.parametrize("after", [[np.nan] * 6, [np.inf, 1.0, 0.9, 0.8, 0.7], [0.0] * 6, []])
def test_broken_values_do_no_harm(tmp_path: Path, after: list[float]) -> None:
    assert list(check(log(tmp_path, after, ANNOUNCEMENTS[0]))) == []
