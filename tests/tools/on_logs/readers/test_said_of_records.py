"""No number is dropped without a word: batches of epochs of unknown length, means of redrawn bars, further numbers."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.on_logs.reading import read_run
from traindx_tools.on_logs.run import Run
from traindx_tools.on_logs.table import extract_training_metrics


def run_of(folder: Path, text: str) -> Run:
    (folder / "run.log").write_text(text)
    return read_run([folder / "run.log"])


def loss_of(run: Run) -> tuple[list[float], list[float]]:
    found = run.first("loss", group="train")
    assert found is not None
    return list(found.step), list(found.values)


def batches(its: range, epochs: int = 4, form: str = "ep{e} it{i} L={x:.3f}", cut: int = 0) -> str:
    lines = [form.format(e=e, i=i, x=2.0 * math.exp(-(e * 400 + i) / 700)) for e in range(1, epochs + 1) for i in its]
    return "\n".join(lines[:-cut] if cut else lines) + "\n"


@pytest.mark.parametrize(("its", "length"), [(range(0, 400, 40), 400), (range(40, 401, 40), 400),
                                             (range(1, 401, 40), 400)])
@pytest.mark.parametrize("cut", [0, 4])
def test_even_distances_tell_the_length_of_an_epoch(tmp_path: Path, its: range, length: int, cut: int) -> None:
    run = run_of(tmp_path, batches(its, cut=cut))
    step, _ = loss_of(run)
    assert step == [float((e - 1) * length + i) for e in range(1, 5) for i in its][:len(step)]
    assert f"{length} is taken" in run.artifacts[0].note


def test_uneven_distances_tell_no_length(tmp_path: Path) -> None:
    odd = "".join(f"ep{e} it{i} L={2 / (e + i / 99):.3f}\n" for e in range(1, 5) for i in (0, 7, 90, 101 + e))
    run = run_of(tmp_path, odd)
    assert np.isnan(loss_of(run)[0]).all()
    assert "of unknown length" in run.artifacts[0].note


def test_numbers_beside_the_metrics_of_a_record_are_told(tmp_path: Path) -> None:
    run = run_of(tmp_path, "".join(f"ep{e} it{i} L={2 / (e + i):.2f}(0.61) a {9.1 + i:.1f}%\n"
                                   for e in range(1, 5) for i in range(0, 40, 10)))
    assert "not used of its records: 0.61, 9.1" in run.artifacts[0].note


@pytest.mark.parametrize("line", ["step {i} loss {x:.3f} lr 1e-4",
                                  "Epoch: [{i}][10/50] Time 0.5 (0.6) Loss {x:.3f} (0.61)",
                                  "2026-11-29 03:12:01,123 INFO step {i} loss {x:.3f} took 1.5s"])
def test_usual_records_need_no_word(tmp_path: Path, line: str) -> None:
    run = run_of(tmp_path, "".join(line.format(i=i, x=2 / (1 + i)) + "\n" for i in range(30)))
    assert "not used of its records" not in run.artifacts[0].note


def bar(epoch: int, batch: int, loss: float, blank: bool) -> str:
    drawn = " " * 20 if blank and batch == 1 else "━" * 20
    return f"\r{batch}/1563 {drawn} 6s 4ms/step - accuracy: 0.1 - loss: {loss:.4f}"


@pytest.mark.parametrize("blank", [True, False], ids=["drawn with spaces", "drawn"])
def test_the_last_drawing_of_an_epoch_is_its_row_and_the_others_are_counted(tmp_path: Path, blank: bool) -> None:
    drawn = (1, 400, 800, 1200, 1563)
    text = "".join(f"Epoch {e}/3\n" + "".join(bar(e, b, 2.0 / e + b / 1e5, blank) for b in drawn) + "\n"
                   for e in (1, 2, 3))
    run = run_of(tmp_path, text)
    assert [round(v, 3) for v in loss_of(run)[1]] == [round(2.0 / e + 0.01563, 3) for e in (1, 2, 3)]
    assert "12 drawings of its bar are no rows" in run.artifacts[0].note


def test_a_table_has_a_row_for_each_record_of_a_line_that_is_redrawn(tmp_path: Path) -> None:
    drawn = "".join(f"\rEpoch {e}: 50%|███  | {b}/20 [00:01<00:01, 8.10it/s, loss={2 / (1 + e * 21 + b):.4f}]"
                    for e in range(3) for b in (0, 10, 20))
    (tmp_path / "bars.log").write_text(drawn + "\n")
    rows = [r.split() for r in extract_training_metrics(tmp_path / "bars.log").render().splitlines()]
    steps = [(row[1], row[2]) for row in rows if row[:1] == ["1"]]
    assert len(steps) == len(set(steps)) == 9
    assert rows[-1][1] == "60"
