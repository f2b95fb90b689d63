"""What was looked at for a symptom that nothing explains: the course of its metric, what its values rule out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from traindx_tools.examine import examine
from traindx_tools.symptom.answer import LookedAt

STUCK = "val accuracy stuck at 0.5: is something wrong?"
EPOCHS = range(1, 13)


def looked(tmp_path: Path, line: str, symptom: str = STUCK, code: str = "") -> LookedAt | None:
    """`line`: with {i} for the epoch and {f}, which falls from 1 to 0.5 and rests there."""
    (tmp_path / "log.txt").write_text("\n".join(
        line.format(i=i, f=0.5 + 0.5 * 0.3 ** (i - 1), r=0.5 + 0.05 * i, n="nan" if i > 4 else "0.5") for i in EPOCHS))
    paths = [tmp_path / "log.txt"]
    if code:
        (tmp_path / "train.py").write_text(code)
        paths.append(tmp_path / "train.py")
    return examine(paths, symptom=symptom).symptom_answers[0].looked


def by(found: LookedAt | None, ruled_out: bool) -> dict[str, str]:
    assert found is not None
    return {e.what: e.by for e in found.explanations if e.ruled_out == ruled_out}


def test_a_run_at_the_limit_of_its_data_is_told_with_the_values_that_rule_things_out(tmp_path: Path) -> None:
    found = looked(tmp_path, "epoch {i} train_loss {f:.4f} val_loss {f:.4f} train_acc 0.52 val_acc 0.49")
    assert found is not None
    assert found.course == "val_acc is 0.49 at epoch 1 and 0.49 at epoch 12"
    assert by(found, True) == {
        "a NaN or an infinity": "train_loss and val_loss are finite in every record",
        "a training that does not move or diverges": "train_loss falls from 1 at epoch 1 to 0.5 at epoch 12",
        "an evaluation that differs from the training": "train_acc ends at 0.52, val_acc at 0.49",
        "overfitting": "val_loss ends at 0.5, its lowest 0.5 at epoch 9",
        "a run that is too short": "val_loss is 0.5004 at epoch 7 and 0.5 at epoch 12"}
    assert not by(found, False)
    assert found.unseen == ("the training code", "the learning rate", "the gradients",
                            "whether inputs and targets belong together")


@pytest.mark.parametrize(("line", "open_"), [
    ("epoch {i} train_loss {f:.4f} val_loss {r:.4f} train_acc 0.51 val_acc 0.49", "overfitting"),
    ("epoch {i} train_loss {f:.4f} val_loss {f:.4f} train_acc 0.98 val_acc 0.49",
     "an evaluation that differs from the training"),
    ("epoch {i} train_loss 0.6931 val_loss 0.6931 train_acc 0.5 val_acc 0.49",
     "a training that does not move or diverges"),
    ("epoch {i} train_loss {n} val_loss 0.6931 train_acc 0.5 val_acc 0.49", "a NaN or an infinity"),
])
def test_what_the_values_do_not_rule_out_is_not_said_to_be(line: str, open_: str, tmp_path: Path) -> None:
    found = looked(tmp_path, line)
    assert open_ in by(found, False)
    assert open_ not in by(found, True)


def test_what_was_read_is_not_called_unseen(tmp_path: Path) -> None:
    line = "epoch {i} lr 0.001 grad_norm 0.3 train_loss {f:.4f} val_loss {f:.4f} train_acc 0.5 val_acc 0.49"
    found = looked(tmp_path, line, code="import torch\nmodel = torch.nn.Linear(3, 2)\n")
    assert found is not None
    assert found.unseen == ("whether inputs and targets belong together",)
    assert by(found, True)["a learning rate of 0"] == "lr is 0.001"


def test_few_records_rule_nothing_out(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("epoch 1 loss 0.7 val_acc 0.5\nepoch 2 loss 0.6 val_acc 0.5\n")
    found = examine([tmp_path / "log.txt"], symptom=STUCK).symptom_answers[0].looked
    assert found is not None
    assert not found.explanations
    assert found.course.startswith("val_acc is 0.5 at epoch 1")


def test_a_metric_that_is_not_there_has_no_course(tmp_path: Path) -> None:
    found = looked(tmp_path, "epoch {i} train_loss {f:.4f}", "the BLEU on the test set is stuck at 3")
    assert found is None or (found.course == "" and not found.explanations)


def test_a_metric_that_is_better_throughout_is_not_stuck_there(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("\n".join(
        f"epoch {i} train_loss {0.4 ** i:.4f} val_loss {0.4 ** i:.4f} val_acc 1.0" for i in EPOCHS))
    answer = examine([tmp_path / "log.txt"], symptom=STUCK).symptom_answers[0]
    assert answer.answer == "not_seen"
    assert "(not 0.5)" in answer.statement


def test_what_instruments_watched_in_a_new_run_is_not_called_unseen(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("\n".join(f"epoch {i} loss {0.4 ** i:.4f} val_acc 0.49" for i in EPOCHS))
    seen = replace(examine([tmp_path / "log.txt"], symptom=STUCK), watched=True)
    found = seen.symptom_answers[0].looked
    assert found is not None
    assert found.unseen == ("the training code",)


def test_a_loss_that_breaks_is_not_answered_with_how_it_learned(tmp_path: Path) -> None:
    found = looked(tmp_path, "epoch {i} lr 2.0 train_loss {n} val_loss {f:.4f}", "the loss explodes and turns NaN")
    assert found is not None
    assert not found.explanations
