"""A held-out score that stands exactly still while the training loss falls is a remark, and no more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from traindx_tools.examine import examine
from traindx_tools.finding import Severity


def table(folder: Path, loss: Sequence[float], score: Sequence[object], beside: str = "") -> Path:
    """A history with a score, and beside it another held-out metric that moves."""
    path = folder / "history.csv"
    path.write_text(f"epoch,train_loss,val_f1{',' + beside if beside else ''}\n" + "".join(
        f"{k},{t:.4f},{v}{f',{0.3 + k / 100:.4f}' if beside else ''}\n"
        for k, (t, v) in enumerate(zip(loss, score, strict=True))))
    return path


def falling(count: int) -> list[float]:
    """A loss that falls and scatters a little."""
    return [2.3 * math.exp(-k / 12) + 0.1 + 0.01 * math.sin(7 * k) for k in range(count)]


def rules(path: Path) -> list[str]:
    return [f.rule for f in examine([path]).findings]


@pytest.mark.parametrize(("count", "score", "beside", "means"), [
    (30, "0.1000", "", "or other weights are evaluated"),
    (30, "10.0", "val_loss", "the evaluated weights do change"),
    (30, "0.0", "", "or other weights are evaluated"),
    (8, "0.7342", "val_acc", "this one does not see what changes"),
])
def test_a_score_that_stands_still_is_remarked_with_values_and_steps(tmp_path: Path, count: int, score: str,
                                                                    beside: str, means: str) -> None:
    found = examine([table(tmp_path, falling(count), [score] * count, beside)])
    (remark,) = [f for f in found.findings if f.rule == "L226"]
    assert remark.severity is Severity.LOW
    assert f"to the last digit at all {count} evaluations from epoch 0 to {count - 1}" in remark.statement
    assert "while the training loss falls by " in remark.statement
    assert means in remark.statement
    assert beside or found.verdict.status == "healthy"


@pytest.mark.parametrize(("loss", "score"), [
    (falling(30), ["1.0"] * 30),  # at its best
    (falling(30), ["100.0"] * 30),
    (falling(5), ["0.7342"] * 5),  # too short
    (falling(11), ["0.65"] * 11),  # 13 of 20 samples
    (falling(11), ["0.1"] * 11),  # chance, early in training
    (falling(30), ["0.1"] * 29 + ["0.1001"]),
    ([2.3 + 0.01 * math.sin(7 * k) for k in range(30)], ["0.1"] * 30),  # nothing is learned: other rules say so
    (falling(30)[::-1], ["0.1"] * 30),
    (falling(30), ["nan"] * 30),
    (falling(30), ["0.7342"] * 15 + ["nan"] * 15),
    (falling(30), ["ten"] * 30),
])
def test_what_is_at_its_best_too_short_or_moves_is_not(tmp_path: Path, loss: Sequence[float],
                                                       score: Sequence[object]) -> None:
    assert "L226" not in rules(table(tmp_path, loss, score))


def with_accuracy(folder: Path) -> Path:
    path = table(folder, falling(30), ["0.7342"] * 30)
    path.write_text(path.read_text().replace("val_f1", "val_acc"))
    return path


def test_what_another_rule_says_more_of_is_left_to_it(tmp_path: Path) -> None:
    found = rules(with_accuracy(tmp_path))  # L213: as if one class were named throughout
    assert "L213" in found
    assert "L226" not in found


def test_a_policy_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    path.write_text("step,train_loss,val_acc,ep_rew_mean\n" + "".join(
        f"{k},{t:.4f},0.1,{k}\n" for k, t in enumerate(falling(30))))
    assert "L226" not in rules(path)
