"""A learning rate that jumps above every rate before, although it had run down."""

from __future__ import annotations

import math

from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.curves import l302_lr_restart as rule


def log(tmp_path, height):
    lines = []
    for i in range(200):
        at, cycle = i % 100, i // 100
        peak = height if cycle else 3e-5
        rate = peak * 0.5 * (1 + math.cos(math.pi * at / 100)) + 1e-9
        loss = 2.1 + 1.5 * math.exp(-i / 20) + 0.02 * (i % 3) + (0.12 * (i - 100) if i >= 100 and height > 1e-4 else 0)
        lines.append(f"step {i} loss {loss:.4f} lr {rate:.3e}\n")
    path = tmp_path / f"{height}.log"
    path.write_text("".join(lines))
    return list(rule.check(read_run(path)))


def test_far_above_every_rate_before_is_no_warm_restart(tmp_path):
    (found,) = log(tmp_path, 8e-4)
    assert "times the highest rate before" in found.statement


def test_a_warm_restart_at_the_old_height_is_left_alone(tmp_path):
    assert not log(tmp_path, 3e-5)
