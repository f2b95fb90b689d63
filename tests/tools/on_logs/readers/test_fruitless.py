"""A log in which each line holds a name of its own: its lines are worked out no more once nothing came of very many."""

from __future__ import annotations

import random
import string
from pathlib import Path

import pytest

from traindx_tools.on_logs import Run, read_run
from traindx_tools.on_logs.readers import understanding
from traindx_tools.on_logs.readers.text_reading import TextReading

RANDOM = random.Random(7)
NAMES = ["".join(RANDOM.choices(string.ascii_lowercase, k=9)) for _ in range(6_000)]


@pytest.fixture
def worked_out(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines that were worked out."""
    told: list[str] = []
    plan_line = understanding.plan_line

    def counted(parts: list[str], group: str | None = None) -> object:
        told.append("".join(parts))
        return plan_line(parts, group)

    monkeypatch.setattr(understanding, "plan_line", counted)
    return told


def read(tmp_path: Path, lines: list[str]) -> Run:
    log = tmp_path / "train.log"
    log.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", errors="surrogateescape")
    return read_run([log])


def test_names_without_a_value_are_given_up_and_counted(tmp_path: Path, worked_out: list[str]) -> None:
    lines = [f"opened {name} with {i % 7} wheels and 0.{i % 10} doors" for i, name in enumerate(NAMES)]
    run = read(tmp_path, [*lines, *(f"step {i} loss {3 - i / 10:.2f}" for i in range(8))])
    assert len(worked_out) < 1_000
    assert {s.name: list(s.values) for s in run.series} == {"loss": pytest.approx([3 - i / 10 for i in range(8)])}
    assert run.artifacts[0].unused == len(lines)
    assert f"{len(lines):,} of" in run.artifacts[0].note


@pytest.mark.parametrize("between", [[], ["step 1 loss 0.5"]])
def test_a_line_that_comes_again_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                               between: list[str]) -> None:
    learned: list[str] = []
    learn = TextReading.learn

    def counted(self: TextReading, text: str, mask: bytes, times: int = 1) -> object:
        learned.append(text)
        return learn(self, text, mask, times)

    monkeypatch.setattr(TextReading, "learn", counted)
    lines = [f"opened {name} with {i % 7} wheels" for i, name in enumerate(NAMES[:2000])]
    again = [line for _ in range(3000) for line in (*between, "opened harbour with 3 wheels")]
    run = read(tmp_path, [*lines, *again, *(f"step {i} loss {3 - i / 10:.2f}" for i in range(8))])
    assert learned.count("opened harbour with 3 wheels") <= 2
    assert run.artifacts[0].unused == 5_000


@pytest.mark.parametrize("late", ["{name}: loss 0.5 at step 12", "opened {name} at step 12 with loss=0.5",
                                  "[eval] step 12 loss 0.5 of {name}"])
def test_a_line_that_names_a_metric_is_read_behind_thousands_that_do_not(tmp_path: Path, late: str) -> None:
    lines = [f"opened {name} with {i % 7} wheels at stop {i}" for i, name in enumerate(NAMES)]
    known = [f"step {i} loss {3 - i / 10:.2f}" for i in range(4)]
    run = read(tmp_path, [*known, *lines, *known, late.format(name="harbour")])
    assert [float(v) for s in run.series for v in s.values if s.name == "loss"][-1] == 0.5


def test_notes_are_kept_behind_thousands_of_lines(tmp_path: Path) -> None:
    lines = [f"opened {name} with {i % 7} wheels" for i, name in enumerate(NAMES)]
    run = read(tmp_path, [*lines, "Resuming from checkpoint run/step_300.pt", "world size: 8",
                          *(f"step {i} loss {3 - i / 10:.2f}" for i in range(8))])
    assert "resume" in {n.kind for n in run.notes}
    assert run.world_size == 8


def test_metrics_with_names_of_their_own_are_all_read(tmp_path: Path) -> None:
    run = read(tmp_path, [f"step {i} {name}={i / 8}" for i in range(2) for name in NAMES[:900]])
    assert {s.name for s in run.series} == set(NAMES[:900])
    assert all(list(s.values) == [0.0, 0.125] for s in run.series)


def test_more_names_than_are_kept_are_given_up(tmp_path: Path, worked_out: list[str]) -> None:
    run = read(tmp_path, [*(f"step {i} {name}={i / 8}" for i, name in enumerate(NAMES * 2)),
                          *(f"step {i} {name}s={i / 8}" for i, name in enumerate(NAMES)), "step 9 loss 0.5"])
    assert len(worked_out) < len(NAMES)
    assert "too many different names" in run.artifacts[0].note


def test_lines_that_are_no_text_are_worked_out_one_by_one(tmp_path: Path) -> None:
    run = read(tmp_path, [*(f"{name}\udc80\x00 0x{i}f \udcff" for i, name in enumerate(NAMES[:3000])),
                          *(f"step {i} loss {3 - i / 10:.2f}" for i in range(8))])
    assert [s.name for s in run.series] == ["loss"]
