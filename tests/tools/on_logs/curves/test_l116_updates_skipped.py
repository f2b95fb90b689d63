"""L116: most updates are said to be skipped; guards that do their work, and lines that say something else, are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_logs.curves.l116_updates_skipped import check
from traindx_tools.on_logs.reading import joined, read_parts

BAR = "Training:  78%|███████▊  | {i}/2000 [6:15:28<1:55:17, 15.58s/step]"
SAID = "2026-01-02 06:19:20,889 - trainer - WARNING - Step {i}: spiky gradient (norm=2.18); skipping optimizer step."
LOSS = "2026-01-02 06:20:07,600 - trainer - INFO - Step {i} | Loss: 0.52{i} | GradNorm: 2.2"


def found(lines: list[str], tmp_path: Path) -> list[Finding]:
    path = tmp_path / "train.log"
    path.write_text("\n".join(lines) + "\n")
    return list(check(joined(read_parts([path]))))


@pytest.mark.parametrize("bar", ["", BAR], ids=["alone", "behind a bar"])
def test_every_step_is_skipped(bar: str, tmp_path: Path) -> None:
    lines = [(bar + SAID).format(i=i) for i in range(100, 160)]
    (one,) = found(lines, tmp_path)
    assert one.measured == {"skipped": 60, "steps": 60, "share": 1.0}
    assert '"Step 100: spiky gradient' in one.statement


def test_steps_are_counted_once_for_all_ranks_that_tell_them(tmp_path: Path) -> None:
    lines = [SAID.format(i=i) for i in range(0, 600, 8) for _ in range(8)]
    assert found(lines, tmp_path) == []


def test_a_guard_for_exceptions_is_left_alone(tmp_path: Path) -> None:
    lines = [(SAID if i % 10 == 0 else LOSS).format(i=i) for i in range(400)]
    assert found(lines, tmp_path) == []


def test_lines_without_a_number_are_counted_by_the_records(tmp_path: Path) -> None:
    said = "WARNING gradients are not finite, skipping the update"
    lines = [line for i in range(60) for line in ([said] if i % 4 else []) + [f"step {i} loss 0.5{i}"]]
    (one,) = found(lines, tmp_path)
    assert one.measured["skipped"] == 45
    assert found([line for i in range(60) for line in ([said] if i % 4 == 0 else []) + [f"step {i} loss 0.5{i}"]],
                 tmp_path) == []
    assert found([line for i in range(60) for line in [said, f"step {100 * i} loss 0.5{i}"]], tmp_path) == []


@pytest.mark.parametrize("said", [
    "resuming: skipping batch {i}", "skipping step {i}, already done", "fast-forward: skipping batch {i}",
    "OVERFLOW! Attempted loss scale: {i}00, reducing to {i}", "step {i} done",
])
def test_what_is_skipped_on_purpose_or_not_at_all(said: str, tmp_path: Path) -> None:
    assert found([said.format(i=i) for i in range(100)], tmp_path) == []
