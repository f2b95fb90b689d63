"""A run that evaluated other rows than it was trained on makes a remark of a text that says that they are the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.live.reading import read_folder
from traindx_tools.live.rows_apart import KIND, acquitted, rows_apart

CLEAN = {"rows": 300, "known": 0}


def suspected(kind: str, rule: str = "C371") -> Finding:
    return Finding(rule, "rows", Severity.MEDIUM, Bearing.CAUSE, "the rows are those of the training",
                   Location(file="train.py", line=3), "code", {"kind": kind})


@pytest.mark.parametrize(("counted", "evaluated", "trained", "distinct", "rows"), [
    (CLEAN, 300, 3000, 1000, 300), ({"rows": 300, "known": 4}, 300, 3000, 1000, 300),
    ({"rows": 300, "known": 40}, 300, 3000, 1000, 0), ({"rows": 200, "known": 0}, 300, 3000, 1000, 0),
    (CLEAN, 300, 1000, 1000, 0), ({"rows": 20, "known": 0}, 20, 3000, 1000, 0), ({"rows": 0, "known": 0}, 0, 0, 0, 0),
], ids=["apart", "twins", "a leak", "trained on later", "changed each time", "few", "nothing"])
def test_when_rows_are_apart(counted: dict[str, int], evaluated: int, trained: int, distinct: int, rows: int) -> None:
    assert rows_apart(counted, evaluated, trained, distinct) == rows


def test_what_the_run_contradicts_is_a_remark() -> None:
    whole, windows, other = suspected("whole"), suspected("windows"), suspected("whole", "C372")
    found = acquitted([whole, windows, other], 300)
    assert [f.severity for f in found] == [Severity.INFO, Severity.MEDIUM, Severity.MEDIUM]
    assert "evaluated 300 rows" in found[0].statement
    assert acquitted([whole], 0) == (whole,)


@pytest.mark.parametrize(("rows", "read"), [(300, 300), ("many", 0), (True, 0), (None, 0)])
def test_the_record_is_read(rows: object, read: int, tmp_path: Path) -> None:
    lines = [{"traindx": "live", "rank": 0, "mode": "watch"}, {"kind": KIND, "rows": rows}, {"kind": "end"}]
    (tmp_path / "rank00000.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert read_folder(tmp_path).rows_apart == read
