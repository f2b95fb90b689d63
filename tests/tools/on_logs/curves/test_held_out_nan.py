"""An evaluation that gives NaN while the training stays finite: the series, the first step, and what that rules out."""

from __future__ import annotations

import math
from collections.abc import Collection
from pathlib import Path

import pytest

from traindx_tools.examine import Examination, examine
from traindx_tools.finding import Finding

NAN = float("nan")


def trainer_log(folder: Path, broken: Collection[int], train_nan: int = 99, as_text: bool = False) -> Path:
    """What the Trainer of transformers prints: four training records an epoch, then a record of the evaluation."""
    rows: list[dict[str, object]] = []
    for epoch in range(1, 11):
        rows += [{"loss": NAN if epoch >= train_nan else round(2.5 * math.exp(-(epoch + k / 4) / 5) + 0.4, 4),
                  "grad_norm": 1.1 + k / 50 + epoch / 90, "learning_rate": 5e-5 * (1 - (epoch + k / 4) / 12),
                  "epoch": epoch - 0.75 + k / 4} for k in range(4)]
        rows.append({"eval_loss": NAN if epoch in broken else round(2.4 * math.exp(-epoch / 5) + 0.5, 4),
                     "eval_runtime": 12.3, "eval_samples_per_second": 81.2, "epoch": float(epoch)})
    path = folder / "train.log"
    path.write_text("".join(f"{ {k: str(v) for k, v in row.items()} if as_text else row}\n" for row in rows))
    return path


def broke(found: Examination) -> Finding:
    (finding,) = [f for f in found.findings if f.rule == "L101"]
    return finding


@pytest.mark.parametrize(("broken", "said"), [
    (range(1, 11), "from its first record (epoch 1) on"),
    (range(4, 11), "from epoch 4 on (last finite value 1.578 at epoch 3)"),
    ((1, 2, 3), "at epoch 1 and at 2 of the 9 records after it"),
    ((1, 3, 5, 7, 9), "at epoch 1 and at 4 of the 9 records after it"),
    ((2, 4, 6, 8, 10), "at epoch 2 (last finite value 2.465 at epoch 1) and at 4 of the 8 records after it"),
    ((5,), "at epoch 5 (last finite value 1.578 at epoch 4); later values are finite again"),
])
@pytest.mark.parametrize("as_text", [False, True])
def test_it_is_named_with_its_first_step_and_the_training_beside_it(
        broken: Collection[int], said: str, as_text: bool, tmp_path: Path) -> None:
    found = examine([trainer_log(tmp_path, broken, as_text=as_text)])
    statement = broke(found).statement
    assert statement.startswith("validation loss (eval_loss) is nan ")
    assert said.split(" (last")[0] in statement
    assert "the training loss stays finite in all 40 records (2.447 at epoch 0.25" in statement
    assert found.verdict.status == "needs_more_data"
    assert [f.rule for f in found.findings] == ["L101"]


def test_what_only_a_backward_pass_does_is_no_suspect(tmp_path: Path) -> None:
    found = examine([trainer_log(tmp_path, range(4, 11))]).verdict.hypotheses
    told = {h.mode.id: h.confidence for h in found if h.speaks_for}
    assert "data.nan-in-input" in told
    assert told.get("grad.sqrt-at-zero", 0.0) < told["data.nan-in-input"]
    assert next(h for h in found if h.mode.id == "data.nan-in-input").claim.startswith("The validation data itself")


def test_a_training_that_breaks_too_is_told_as_that(tmp_path: Path) -> None:
    finding = broke(examine([trainer_log(tmp_path, range(6, 11), train_nan=6)]))
    assert finding.measured["group"] == "train"
    assert "stays finite" not in finding.statement
    assert finding.measured["training"] is None


def test_a_healthy_run_and_epochs_without_an_evaluation_are_left_alone(tmp_path: Path) -> None:
    assert examine([trainer_log(tmp_path, ())]).verdict.status == "healthy"
    path = tmp_path / "every.log"
    path.write_text("".join(  # one line an epoch, and an evaluation every third: nan stands for none
        f"epoch {e} train_loss {2.5 * math.exp(-e / 9) + 0.4:.4f} val_loss "
        f"{'nan' if e % 3 else f'{2.4 * math.exp(-e / 9) + 0.5:.4f}'} val_acc {'nan' if e % 3 else f'{e / 40:.4f}'}\n"
        for e in range(1, 31)))
    assert "L101" not in [f.rule for f in examine([path]).findings]


def test_a_broken_log_says_nothing_of_it(tmp_path: Path) -> None:
    path = tmp_path / "cut.log"
    path.write_text("{'eval_loss': nan, 'eval_runt\n{'eval_loss': \n")
    assert all("stays finite" not in f.statement for f in examine([path]).findings)


def test_how_long_an_evaluation_takes_is_no_outcome(tmp_path: Path) -> None:
    path = trainer_log(tmp_path, ())
    path.write_text(path.read_text().replace("'eval_loss'", "'eval_other_time'"))
    assert "L215" not in [f.rule for f in examine([path]).findings]
