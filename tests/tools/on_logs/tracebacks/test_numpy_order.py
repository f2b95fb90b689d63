"""Of NumPy's warnings in a log only that one is where a metric stopped being finite which can be."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.reading import read_run
from traindx_tools.on_logs.tracebacks import l526_warnings

EXP, LOG = "overflow encountered in exp", "divide by zero encountered in log"
TIMES = "invalid value encountered in multiply"
ROW = "  loss = -np.mean(y * np.log(1 / (1 + np.exp(-z))))"


def found(folder: Path, *rows: str | tuple[str, int]) -> list[Finding]:
    """What is found in a log of these rows: a loss, or a warning and its line of the script."""
    text, step = [], 0
    for row in rows:
        if isinstance(row, tuple):
            text += [f"/job/train.py:{row[1]}: RuntimeWarning: {row[0]}", ROW]
        else:
            text.append(f"step {step} loss {row} grad_norm 0.5")
            step += 5
    (folder / "run.log").write_text("\n".join(text) + "\n")
    return list(l526_warnings.check(read_run(folder / "run.log")))



def test_an_overflow_that_became_the_zero_of_a_logarithm_is_not_the_origin(tmp_path: Path) -> None:
    seen = found(tmp_path, "0.7", "0.5", (EXP, 9), (LOG, 9), (TIMES, 9), (EXP, 10), "0.4", "nan", "nan", "nan")
    assert [f.measured["what"] for f in seen] == [EXP, LOG, TIMES, EXP], "one line may warn of several things"
    assert [f.measured["what"] for f in seen if f.measured["origin"]] == [LOG]
    assert "became the 0 that the logarithm in the same statement met" in seen[0].statement
    assert f"after the {LOG}" in seen[3].statement
    assert [f.bearing for f in seen] == [Bearing.COMPANION, Bearing.CAUSE, Bearing.COMPANION, Bearing.COMPANION]


def test_an_overflow_without_such_a_logarithm_stays_one(tmp_path: Path) -> None:
    alone = found(tmp_path, "0.7", "0.5", (EXP, 9), "nan", "nan", "nan")
    elsewhere = found(tmp_path, "0.7", "0.5", (EXP, 9), (LOG, 12), "nan", "nan", "nan")
    for seen in (alone, elsewhere):
        assert [f.measured["what"] for f in seen if f.measured["origin"]] == [EXP]


def test_what_comes_after_nan_or_was_survived_is_not_the_origin(tmp_path: Path) -> None:
    seen = found(tmp_path, (EXP, 4), *["0.5"] * 8, (LOG, 9), "nan", "nan", (EXP, 11), "nan")
    assert [f.measured["what"] for f in seen if f.measured["origin"]] == [LOG]
    assert "8 finite records followed it" in seen[0].statement
    assert "was not finite before that" in seen[2].statement


def test_a_run_that_stays_finite_keeps_its_remarks(tmp_path: Path) -> None:
    seen = found(tmp_path, "0.7", (EXP, 9), "0.5", (LOG, 12), *["0.4"] * 5)
    assert {f.severity for f in seen} == {Severity.INFO}
    assert [f.measured["origin"] for f in seen] == [True, True]


@pytest.mark.parametrize("cut", range(0, 400, 23))
def test_a_log_that_is_cut_off_is_read(tmp_path: Path, cut: int) -> None:
    found(tmp_path, "0.7", "0.5", (EXP, 9), (LOG, 9), (TIMES, 9), "nan", "nan")
    whole = (tmp_path / "run.log").read_bytes()
    (tmp_path / "run.log").write_bytes(b"step 0 loss 1.0\n" + whole[:cut])
    assert all(f.statement for f in l526_warnings.check(read_run(tmp_path / "run.log")))
