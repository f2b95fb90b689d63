"""Names that differ in their digits are metrics of their own, however many lines there are and whatever reads them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from traindx_tools.on_logs.reading import read_run
from traindx_tools.on_logs.run import Run


def read(folder: Path, text: str) -> Run:
    path = folder / "train.log"
    path.write_text(text)
    return read_run([path])


def told(run: Run, original: str) -> list[float]:
    return [v for s in run.series if s.original == original for v in s.values.tolist()]


def lines(steps: int) -> str:
    rng = random.Random(0)
    out = []
    for step in range(steps):
        out.append(f"step {step} loss {3 - step / 10_000:.4f}")
        out += [f"gpu{g}: {40 + 10 * g + rng.random():.1f} util" for g in range(3)]
    return "\n".join(out) + "\n"


@pytest.mark.parametrize("steps", [4, 30, 300, 3_000])
def test_a_line_for_each_device(steps: int, tmp_path: Path) -> None:
    run = read(tmp_path, lines(steps))
    for g in range(3):
        values = told(run, f"gpu{g}")
        assert len(values) == steps
        assert 40 + 10 * g <= min(values) <= max(values) <= 51 + 10 * g


def test_prefixes_and_indentation(tmp_path: Path) -> None:
    text = "".join(f"2026-01-02 03:04:{s:02d},123 INFO m: step {s} top1: {s + 0.5} | loss {1 / (s + 1):.3f}\n"
                   f"2026-01-02 03:04:{s:02d},123 INFO m: step {s} top5: {s + 50.5} | loss {1 / (s + 1):.3f}\n"
                   for s in range(60))
    run = read(tmp_path, text)
    assert told(run, "top1") == [s + 0.5 for s in range(60)]
    assert told(run, "top5") == [s + 50.5 for s in range(60)]


def test_the_same_digits_in_each_line(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(f"step {s} acc@top5 {s / 100:.2f} loss2 {3 - s / 100:.2f}\n" for s in range(100)))
    assert told(run, "loss2") == [pytest.approx(3 - s / 100) for s in range(100)]


def test_a_counter_that_is_glued_to_its_letter_is_told_as_unused(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(f"T{s}: {3 - s / 300:.4f} @ 3.0e-04 ({3 * s})\n" for s in range(200)))
    assert not run.series
    assert run.artifacts[0].unused == 200


def test_a_name_in_another_script(tmp_path: Path) -> None:
    run = read(tmp_path, "".join(
        f"step {s} потери{g} {s + 100 * g}.5 loss {g}.{s}\n" for s in range(60) for g in (1, 2)))
    assert len(told(run, "loss")) == 120
