"""Two tables of one span of time by clocks of different zones."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.used_by_code import with_use

JOINS = """import pandas as pd
weather = pd.read_csv("weather.csv")
weather["time"] = pd.to_datetime(weather["valid_time"]).dt.tz_localize(None)
both = pd.read_csv("load.csv").merge(weather, on="time")
"""


def tables(folder: Path, hours: float, *, zone: str = "+00:00", rows: int = 400, more: int = 0) -> None:
    start = datetime(2023, 1, 2)
    for name, field, begin, said, count in (("load.csv", "time", start, "", rows), (
            "weather.csv", "valid_time", start - timedelta(hours=hours), zone, rows + more)):
        lines = [f"{begin + timedelta(hours=k):%Y-%m-%d %H:%M:%S}{said},{k * 7 % 23 / 3:.3f}" for k in range(count)]
        (folder / name).write_text("\n".join([f"{field},value_{field}", *lines]) + "\n")


def told(folder: Path) -> list[Finding]:
    return [f for f in examine([folder]).findings if f.rule == "D173"]


@pytest.mark.parametrize(("hours", "zone"), [(9, "+00:00"), (-5, "Z"), (5.5, " UTC")])
def test_a_remark_without_code_and_an_alarm_where_the_code_converts_nothing(
    hours: float, zone: str, tmp_path: Path
) -> None:
    tables(tmp_path, hours, zone=zone)
    (found,) = told(tmp_path)
    assert found.severity is Severity.INFO
    assert f"{abs(hours):g} hours {'before' if hours > 0 else 'after'}" in found.statement
    code = tmp_path / "train.py"
    code.write_text(JOINS)
    (judged,) = with_use([found], [code])
    assert judged.severity is Severity.HIGH
    code.write_text(JOINS.replace(".dt.tz_localize(None)", '.dt.tz_convert("Asia/Tokyo").dt.tz_localize(None)'))
    assert with_use([found], [code]) == []
    code.write_text("print(1)\n")
    assert [f.severity for f in with_use([found], [code])] == [Severity.INFO]


@pytest.mark.parametrize("made", [{"hours": 0}, {"hours": 9, "zone": ""}, {"hours": 9.1}, {"hours": 48},
                                  {"hours": 9, "more": 60}, {"hours": 9, "rows": 50}])
def test_one_clock_no_zone_and_other_spans_are_quiet(made: dict[str, float], tmp_path: Path) -> None:
    tables(tmp_path, **made)  # type: ignore[arg-type]
    assert told(tmp_path) == []


def test_texts_that_are_no_times_are_quiet(tmp_path: Path) -> None:
    tables(tmp_path, 9)
    (tmp_path / "load.csv").write_text("time,v\n" + "2023-99-99 77:00:00,1\n" * 400)
    assert told(tmp_path) == []
