"""`--name OWN=KNOWN`: a person says what a name in a log stands for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from traindx.cli import run as run_cli

LOG = "".join(f"Runde {n} Gurke {2.5 - n / 10 if n < 9 else 'nan'}\n" for n in range(1, 15))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.txt"
    path.write_text(LOG)
    return path


def run(*arguments: str) -> int:
    return run_cli(list(arguments))


def test_a_log_whose_names_nobody_knows_says_how_they_are_told(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("log", str(log)) == 2
    assert "--name OWN=KNOWN" in capsys.readouterr().err


def test_what_is_told_is_read(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("log", str(log), "--name", "Gurke=loss", "--name", "Runde=epoch", "--format", "csv") == 0
    assert "epoch" in capsys.readouterr().out


def test_what_is_told_is_judged(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("diagnose", str(log), "--name", "Gurke=loss", "--json") in (1, 3)
    assert "L101" in {f["rule"] for f in json.loads(capsys.readouterr().out)["findings"]}


@pytest.mark.parametrize("told", ["Gurke", "=loss", "Gurke=", "Gurke=salad"])
def test_what_cannot_be_meant_is_refused(log: Path, capsys: pytest.CaptureFixture[str], told: str) -> None:
    assert run("log", str(log), "--name", told) == 2
    assert "loss" in capsys.readouterr().err
