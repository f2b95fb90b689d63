"""The table of anomalies, and the command that prints it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from traindx.commands.log import command


@pytest.fixture
def log(tmp_path: Path) -> Path:
    values = 5 + 0.1 * np.random.default_rng(0).standard_normal(400)
    values[[150, 220, 300]] += 4.0
    path = tmp_path / "run.log"
    path.write_text("".join(f"step {t} loss {2 - t / 400:.4f} glorp {v:.5f}\n" for t, v in enumerate(values)))
    return path


def printed(*arguments: str) -> str:
    done = CliRunner().invoke(command, list(arguments))
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_series_of_an_unknown_name_is_shown_with_what_it_looks_like(log: Path) -> None:
    text = printed(str(log), "--anomalies")
    assert "glorp): spike up at step 150, " in text
    assert f"{log}:151)" in text


def test_programs_get_a_row_an_anomaly(log: Path) -> None:
    rows = json.loads(printed(str(log), "--anomalies", "--format", "json"))
    assert [(r["start"], r["kind"]) for r in rows if r["original"] == "glorp"] == [
        (150.0, "spike"), (220.0, "spike"), (300.0, "spike")]
    assert len(list(csv.DictReader(printed(str(log), "--anomalies", "--format", "csv").splitlines()))) == len(rows)


def test_a_quiet_run_says_so(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text("".join(f"step {t} loss {2 + 0.01 * ((t * 7919) % 101):.4f}\n" for t in range(30)))
    assert printed(str(path), "--anomalies") == "nothing stands out in any series\n"
