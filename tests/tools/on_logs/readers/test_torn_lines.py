"""Lines that another process tore: the values behind the tear keep their place among the steps."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from traindx_tools.on_logs.reading import read_run
from traindx_tools.on_logs.run import Series

BETWEEN = "W1203 09:00:00.123456 99 data.py:7] worker 3 slow fetch 12.5 s\n"


def _loss(folder: Path, lines: Iterable[str]) -> Series:
    path = folder / "train.log"
    path.write_text("".join(lines))
    return next(s for s in read_run(path).series if s.name == "loss")


def _line(step: int) -> str:
    return f"I1203 09:{step // 60:02d}:{step % 60:02d}.123456 12 train.py:99] step={step} loss={3 / (1 + step):.4f}\n"


def _torn(step: int) -> str:
    first, rest = _line(step).split("loss")
    return f"{first}{BETWEEN}loss{rest}"


def test_torn_lines_keep_their_steps(tmp_path: Path) -> None:
    loss = _loss(tmp_path, (_torn(t) if t % 40 == 17 else _line(t) for t in range(400)))
    assert loss.unit == "step"
    assert np.array_equal(loss.step, np.arange(400))


def test_a_log_in_which_many_records_have_no_step_counts_lines(tmp_path: Path) -> None:
    loss = _loss(tmp_path, (_torn(t) if t % 4 == 1 else _line(t) for t in range(400)))
    assert loss.unit == "line"


def test_where_the_steps_go_back_nothing_is_guessed(tmp_path: Path) -> None:
    lines = [_line(t) for t in range(100)] + ["loss=0.5000\n"] + [_line(t) for t in range(50, 150)]
    assert _loss(tmp_path, lines).unit == "line"
