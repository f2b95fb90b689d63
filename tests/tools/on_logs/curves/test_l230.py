"""A test whose metrics all fall on an early epoch of validation."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.examine import examine
from traindx_tools.finding import Finding

LOSS = [1.5, 1.35, 1.14, 0.89, 0.66, 0.47, 0.35, 0.27, 0.23]
ACCURACY = [0.41, 0.77, 0.9, 0.928, 0.936, 0.946, 0.954, 0.958, 0.956]


def log(folder: Path, test: str, loss: list[float] = LOSS, accuracy: list[float] = ACCURACY) -> Path:
    path = folder / "log.txt"
    path.write_text("".join(f"epoch {k} train_loss {v + 0.1:.3f} val_loss {v} val_acc {a}\n" for k, (v, a) in enumerate(
        zip(loss, accuracy, strict=True))) + test)
    return path


def told(path: Path) -> list[Finding]:
    return [f for f in examine([path]).findings if f.rule == "L230"]


@pytest.mark.parametrize(("test", "epoch"), [
    ("test_acc 0.442 test_loss 1.495\n", "epoch 0 of 8"),
    ("kept best epoch=1-val_acc=0.770.ckpt\ntest_loss 1.33 test_acc 0.76\n", "epoch 1 of 8"),
])
def test_the_first_or_a_bad_epoch_is_tested(test: str, epoch: str, tmp_path: Path) -> None:
    (found,) = told(log(tmp_path, test))
    assert epoch in found.statement
    assert "at the best" in found.statement


@pytest.mark.parametrize(("test", "loss", "accuracy"), [
    ("test_acc 0.95 test_loss 0.25\n", LOSS, ACCURACY), ("test_acc 0.70 test_loss 0.9\n", LOSS, ACCURACY),
    ("test_acc 0.442\n", LOSS, ACCURACY), ("test_acc 0.442 test_loss nan\n", LOSS, ACCURACY), ("", LOSS, ACCURACY),
    ("test_acc 0.95 test_loss 0.25\n", LOSS[::-1], ACCURACY[::-1]),
    ("test_acc 0.5 test_loss 1.5\n", [1.5] * 9, [0.5] * 9),
    ("test_acc 0.41 test_loss 1.5\n", LOSS[:3], ACCURACY[:3]),
])
def test_a_trained_model_another_test_set_and_too_little_are_quiet(
    test: str, loss: list[float], accuracy: list[float], tmp_path: Path
) -> None:
    assert told(log(tmp_path, test, loss, accuracy)) == []
