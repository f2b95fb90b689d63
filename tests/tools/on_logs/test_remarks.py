"""What the rest of the run shows to be harmless is a remark: warnings of a run that learns, a rise among right answers,
a silent rank among many."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_logs.judge import judge_run
from traindx_tools.on_logs.reading import read_run


def judged(tmp_path: Path, text: str, rule: str) -> list[Finding]:
    path = tmp_path / "train.log"
    path.write_text(text)
    return [f for f in judge_run(read_run(path)) if f.rule == rule]


WARNINGS = {
    "checkpoint": "/opt/lib/python3.11/site-packages/torch/utils/checkpoint.py:91: UserWarning: None of the inputs "
                  "have requires_grad=True. Gradients will be None\n  warnings.warn(\n",
    "scheduler": "/opt/lib/python3.11/site-packages/torch/optim/lr_scheduler.py:136: UserWarning: Detected call of "
                 "`lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call them in "
                 "the opposite order.\n  warnings.warn(\n",
}


@pytest.mark.parametrize(("warning", "falls", "severity"), [
    ("checkpoint", 0.1, "info"), ("checkpoint", 0.0, "medium"), ("scheduler", 0.1, "low"),
    ("scheduler", 0.0, "medium")])
def test_a_warning_counts_where_the_loss_does_not_fall(tmp_path: Path, warning: str, falls: float,
                                                       severity: str) -> None:
    lines = "".join(f"step {i} loss {3 - falls * i + 0.01 * (i % 2):.4f}\n" for i in range(20))
    (found,) = judged(tmp_path, WARNINGS[warning] + lines, "L526")
    assert found.severity.value == severity


@pytest.mark.parametrize(("best", "last", "severity"), [
    (0.991, 0.991, "info"), (0.991, 0.974, "info"), (0.61, 0.61, "low"), (0.61, 0.58, "low")])
def test_a_rise_of_a_few_per_cent_while_nearly_all_is_right(tmp_path: Path, best: float, last: float,
                                                            severity: str) -> None:
    losses = [0.40, 0.20, 0.10, 0.06, 0.050, 0.051, 0.052, 0.053, 0.0535, 0.054, 0.0545]
    lines = "".join(
        f"epoch {i} train_loss {0.5 * 0.6 ** i:.6f} val_loss {v:.5f} val_acc {best if i < 6 else last:.4f}\n"
        for i, v in enumerate(losses))
    (found,) = judged(tmp_path, lines, "L203")
    assert found.severity.value == severity


def ranked(ranks: tuple[int, ...], size: int) -> str:
    head = f"world_size: {size}\n"
    return head + "".join(f"[rank{r}]: step {i} loss {3 - i / 10:.3f}\n" for i in range(6) for r in ranks)


def test_one_silent_rank_of_a_row_is_named(tmp_path: Path) -> None:
    (found,) = judged(tmp_path, ranked((0, 1, 3), 4), "L702")
    assert found.severity.value == "high"
    assert "rank 2 writes nothing" in found.statement


def test_where_the_ranks_behind_are_silent_too_none_is_singled_out(tmp_path: Path) -> None:
    (found,) = judged(tmp_path, ranked((0, 1, 3), 8), "L702")
    assert found.severity.value == "low"
    assert found.statement.endswith("nor do ranks 4 to 7")


def test_one_line_of_a_tool_is_no_lost_metric(tmp_path: Path) -> None:
    path = tmp_path / "nbc.log"
    path.write_text("[NbConvertApp] Converting notebook a.ipynb to notebook\nWarning: frozen modules are on\n"
                    "[NbConvertApp] Writing 270672 bytes to a.done.ipynb\n")
    assert all(a.lost is None for a in read_run(path).artifacts)
    path.write_text("".join(f">> {i}: {0.3 + i / 300:.3f} / {0.9 - i / 300:.3f}\n" for i in range(60)))
    assert any(a.lost is not None for a in read_run(path).artifacts)
