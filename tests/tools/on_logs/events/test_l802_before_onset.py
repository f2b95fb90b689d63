"""What goes ahead of the first trouble: other series of the log, and lines that stand there and nowhere else."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.judge import judge_events
from traindx_tools.on_logs.reading import joined, read_parts

RNG = np.random.default_rng(2)
WARNING = "2026-11-29 03:24:00,003 WARNING dataset: cache full at /tmp/cache (100%), reading shards from nfs"


def seen(folder: Path, text: str, name: str = "train.log") -> list[Finding]:
    (folder / name).write_text(text, encoding="utf-8")
    reading, failures = read_parts([folder / name]), list[str]()
    found = judge_events(joined(reading), reading.sources, failures)
    assert failures == []
    return [f for f in found if f.rule == "L802"]


def blown_up(rises: int | None = 120, breaks: int = 121, ends: int = 126) -> str:
    """A loss that blows up at record `breaks` and is NaN from `ends` on; the rate rises at record `rises`."""
    lines = []
    for i in range(180):
        rate = 3e-4 * (1 if rises is None or i < rises else min(40, 9 + 8 * (i - rises)))
        up = math.exp(0.7 * (i - breaks + 1)) if breaks <= i else 1.0
        loss = (0.35 + 1.95 * math.exp(-i / 30)) * up + RNG.normal(0, 0.01)
        lines.append(f"step {10 * i} | loss {loss if i < ends else math.nan:.4f} | lr {rate:.2e}")
    return "\n".join(lines) + "\n"


def slowed(*, warning: bool, often: bool = False, at: int = 130) -> str:
    """Speed that halves at record `at`, where a warning may stand."""
    lines = []
    for i in range(240):
        speed = (32_000 if i < at else 15_600) * (1 + RNG.normal(0, 0.01))
        lines.append(f"2026-11-29 03:{i // 10:02d}:{i % 10:02d},100 INFO trainer: iter {10 * i} loss="
                     f"{3 + 7 * math.exp(-i / 40) + RNG.normal(0, 0.03):.4f} tok/s={speed:.0f}")
        if warning and (i == at or (often and i % 20 == 0)):
            lines.append(WARNING)
        if i == 40:
            lines.append("2026-11-29 03:04:00,500 INFO trainer: saved the vocabulary")
    return "\n".join(lines) + "\n"


def test_the_rate_that_rose_just_before(tmp_path: Path) -> None:
    (found,) = seen(tmp_path, blown_up())
    assert found.statement.startswith("learning_rate goes from 0.0003 to 0.012 at step 1200")
    assert "1 record before loss rises" in found.statement
    assert (found.severity, found.bearing) == (Severity.HIGH, Bearing.SIGN)
    assert (found.measured["lead"], found.measured["good_records"]) == ("learning_rate", 121)


def test_the_warning_that_stands_there(tmp_path: Path) -> None:
    (found,) = seen(tmp_path, slowed(warning=True))
    assert found.statement.startswith("`WARNING dataset: cache full at /tmp/cache (100%), reading shards from nfs`")
    assert "where tokens_per_second falls from 3" in found.statement
    assert (found.bearing, found.measured["warns"]) == (Bearing.COMPANION, True)
    assert found.measured["chance"] == pytest.approx(0.02, abs=0.01)


@pytest.mark.parametrize("text", [
    slowed(warning=False), slowed(warning=True, often=True), slowed(warning=True, at=1_000), blown_up(rises=None),
    blown_up(rises=40), blown_up(rises=150, ends=160), blown_up(rises=120, breaks=500, ends=500),
    "step 1 loss 2.0 lr 0.1\n", "nothing to see\n" * 3 + "step 1 loss nan\n" * 20,
], ids=["no line", "a warning that comes often", "nothing became slow", "nothing ahead", "long before", "after",
        "no trouble", "one record", "nothing finite"])
def test_where_nothing_goes_ahead(text: str, tmp_path: Path) -> None:
    assert seen(tmp_path, text) == []


def test_control_signs_in_a_line_do_not_reach_the_terminal(tmp_path: Path) -> None:
    (found,) = seen(tmp_path, slowed(warning=True).replace("cache full", "cache \x1b[31mfull\x07"))
    assert not {"\x1b", "\x07"} & {*found.statement}
