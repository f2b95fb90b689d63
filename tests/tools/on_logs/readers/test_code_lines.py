"""Source lines that a warning or a traceback prints are no metrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.on_logs import read_run


@pytest.mark.parametrize("code", [
    "  grad = ((1.0 - label) / (1.0 - prob) - label / prob) / len(label)",
    "  loss = -np.mean(label * np.log(prob) + (1.0 - label) * np.log(1.0 - prob))",
    "    norm = (x ** 2).sum() ** 0.5",
    "  acc = (out == y).sum() / 64",
])
def test_an_expression_is_no_metric(tmp_path: Path, code: str) -> None:
    lines = ["step 1 loss 0.5", "train.py:7: RuntimeWarning: invalid value", code, "step 2 loss 0.4", ""]
    (tmp_path / "log.txt").write_text("\n".join(lines))
    run = read_run([tmp_path / "log.txt"])
    assert [(s.name, list(s.values)) for s in run.series] == [("loss", [0.5, 0.4])]


@pytest.mark.parametrize("line", ["loss = 0.25 - acc = 0.9", "loss = 0.25 (0.3) acc = 0.9"])
def test_a_metric_with_brackets_stays_one(tmp_path: Path, line: str) -> None:
    (tmp_path / "log.txt").write_text("".join(f"step {i} {line}\n" for i in range(3)))
    assert {"loss", "accuracy"} <= {s.name for s in read_run([tmp_path / "log.txt"]).series}


def test_names_that_end_in_a_sign_are_metrics_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("".join(f"it={i} loss=0.5{i} d+=0.3{i} d-=1.2{i}\n" for i in range(4)))
    found = {s.name: list(s.values) for s in read_run([tmp_path / "log.txt"]).series}
    assert found["d_plus"] == [0.3, 0.31, 0.32, 0.33]
    assert found["d_minus"] == [1.2, 1.21, 1.22, 1.23]


@pytest.mark.parametrize("code", ["total += 0.5", "    hits+=2", "loss_sum +=loss.item() * 4", "if ok: n += 1"])
def test_adding_up_is_no_metric(tmp_path: Path, code: str) -> None:
    (tmp_path / "log.txt").write_text("\n".join(["step 1 loss 0.5", code, "step 2 loss 0.4", ""]))
    run = read_run([tmp_path / "log.txt"])
    assert [(s.name, list(s.values)) for s in run.series] == [("loss", [0.5, 0.4])]
