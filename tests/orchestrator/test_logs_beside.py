"""A README, a script or a configuration is given: the log beside it is named, with the command that reads it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from traindx.diagnose import diagnose

LOG = "".join(f"step {i} loss {2.0 * 0.99**i + 0.1:.4f} grad_norm {0.5 + 0.01 * (i % 7):.3f}\n" for i in range(60))
TRAIN = "import torch\nnet = torch.nn.Linear(2, 1)\nloss = net(torch.ones(1, 2)).sum()\nloss.backward()\n"


def run_folder(at: Path) -> Path:
    (at / "README.md").write_text("# A run\nIt fails.\n")
    (at / "train.py").write_text(TRAIN)
    (at / "log.txt").write_text(LOG)
    return at


@pytest.mark.parametrize("given", ["README.md", "train.py"])
def test_the_log_beside_what_was_given_is_named_with_the_command_that_reads_it(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.chdir(run_folder(tmp_path))
    report = diagnose([given], symptom="it crashed")
    assert report.next_checks == ("traindx diagnose . --symptom 'it crashed'",)
    assert "log.txt beside it holds 120 values of 2 metrics, and was not given" in report.notes
    assert "log.txt beside it" in report.terminal()
    assert "Missing" not in report.terminal()


def test_what_holds_values_itself_is_judged_and_nothing_is_looked_for(tmp_path: Path) -> None:
    (run_folder(tmp_path) / "old.txt").write_text(LOG)
    for given in (tmp_path, tmp_path / "log.txt"):
        assert not any("beside it" in note for note in diagnose([given]).notes)


def test_texts_that_look_like_logs_and_hold_no_run_are_not_named(tmp_path: Path) -> None:
    run_folder(tmp_path)
    (tmp_path / "log.txt").write_text("step by step: 3 things about a loss of 4 kg\n" * 3)
    (tmp_path / "table.csv").write_text("name,age\nA,3\nB,4\n")
    assert not any("beside it" in note for note in diagnose([tmp_path / "README.md"]).notes)


def test_a_file_that_cannot_be_read_is_passed_over_and_the_newest_is_named_first(tmp_path: Path) -> None:
    run_folder(tmp_path)
    (tmp_path / "a.log").write_bytes(b"\x00\xff\xfe" * 400)
    (tmp_path / "old.log").write_text(LOG)
    os.utime(tmp_path / "old.log", (1e9, 1e9))
    told = [note for note in diagnose([tmp_path / "README.md"]).notes if "beside it" in note]
    assert len(told) == 1
    assert told[0].startswith("log.txt beside it")
    assert "old.log" in told[0]


def test_a_text_alone_asks_for_the_log_and_not_for_the_code(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello\n")
    assert "Missing   what the run printed" in diagnose([tmp_path / "notes.txt"]).terminal()
