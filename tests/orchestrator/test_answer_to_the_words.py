"""What a person says is answered where nothing is wrong as well, and the next command asks it again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from traindx.group import traindx

STUCK = "val accuracy stuck at 0.5: is something wrong?"
LINE = "epoch {i} train_loss {f:.4f} val_loss {f:.4f} train_acc 0.52 val_acc 0.49\n"
CODE = "import torch\nmodel = torch.nn.Linear(3, 2)\nloss = model(torch.ones(1, 3)).sum()\nprint(loss)\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "log.txt").write_text("".join(LINE.format(i=i, f=0.5 + 0.5 * 0.3**i) for i in range(12)))
    return tmp_path / "run"


def told(*arguments: str) -> str:
    return CliRunner().invoke(traindx, ["diagnose", *arguments], env={"COLUMNS": "100"}).stdout


def test_a_log_alone(run: Path) -> None:
    out = told("run/log.txt", "--symptom", STUCK)
    assert "It did    val_acc is 0.49 at epoch 0 and 0.49 at epoch 11" in out
    assert "Ruled out a NaN or an infinity: train_loss and val_loss are finite in every record" in out
    assert "overfitting: val_loss ends at 0.5" in out
    assert "Not seen  the training code, the learning rate, the gradients" in out
    assert "Missing" in out


def test_with_code_the_next_command_keeps_the_words(run: Path) -> None:
    (run / "train.py").write_text(CODE)
    out = told("run", "--symptom", STUCK)
    assert "Not seen  the learning rate, the gradients" in out
    assert f"traindx diagnose run --run 'python train.py' --symptom '{STUCK}'" in out


def test_in_json(run: Path) -> None:
    [answer] = json.loads(told("run", "--symptom", STUCK, "--json"))["symptom_answer"]
    assert answer["looked_at"]["course"].startswith("val_acc is 0.49")
    assert {"explanation": "an evaluation that differs from the training",
            "by": "train_acc ends at 0.52, val_acc at 0.49"} in answer["looked_at"]["ruled_out"]


def test_without_words_nothing_is_ruled_out(run: Path) -> None:
    assert "Ruled out" not in told("run")


def test_words_that_nothing_reads_rule_nothing_out(run: Path) -> None:
    assert "Ruled out" not in told("run", "--symptom", "the blorp is wuzzy")


@pytest.mark.parametrize("columns", ["40", "80"])
def test_a_command_is_never_cut(run: Path, columns: str) -> None:
    out = CliRunner().invoke(traindx, ["diagnose", "run/log.txt", "--symptom", STUCK], env={"COLUMNS": columns}).stdout
    missing = " ".join(out.partition("Missing")[2].partition("\nNext")[0].split())
    assert "`traindx diagnose run/log.txt PATH/TO/train.py`" in missing
    assert missing.endswith("`traindx diagnose run/log.txt --against GOOD`")


def test_the_answer_names_a_report_that_is_there(run: Path) -> None:
    out = told("run")
    assert Path(out.partition("Report")[2].split()[0]).is_file()
