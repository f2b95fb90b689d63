"""D230: meter readings of several plants, one of which writes its dates day first."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from types import ModuleType

import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d230_dates_written_apart as d230
from traindx_tools.on_data.run_data import of_run

Seen = Callable[[ModuleType, Path], list[Finding]]
ISO, DAY, MONTH, DOTS = "%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y %H:%M"


def write(folder: Path, forms: dict[str, str], days: int = 300, cell: Callable[[date, str], str] | None = None) -> None:
    folder.mkdir(exist_ok=True)
    for name, form in forms.items():
        rows = []
        for i in range(days):
            day = date(2025, 1, 1) + timedelta(days=i)
            rows.append(f"{cell(day, form) if cell else day.strftime(form)},{name[0]}1,{20 + i % 7}.{i % 10}")
        (folder / f"{name}.csv").write_text("date,meter,mwh\n" + "\n".join(rows) + "\n")


@pytest.mark.parametrize(("forms", "said"), [
    ({"harbour": DAY, "north": ISO}, "the year first"), ({"harbour": DAY, "north": MONTH, "south": MONTH}, "the month"),
    ({"harbour": DOTS, "north": ISO, "south": ISO}, "the year first"),
])
def test_the_part_that_writes_the_day_first_is_named(
    forms: dict[str, str], said: str, tmp_path: Path, seen_by: Seen
) -> None:
    write(tmp_path, forms)
    (found,) = seen_by(d230, tmp_path)
    assert found.severity is Severity.HIGH
    assert "date of harbour.csv is written with the day first" in found.statement
    assert said in found.statement
    assert 0.3 < float(str(found.measured["open"])) < 0.4


def test_both_orders_in_one_file(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, {"all": DAY}, cell=lambda d, form: d.strftime(DAY if d.month < 6 else MONTH))
    (found,) = seen_by(d230, tmp_path)
    assert "others with the month first" in found.statement


@pytest.mark.parametrize("forms", [
    {"harbour": DAY, "north": DAY}, {"harbour": ISO, "north": ISO}, {"harbour": MONTH, "north": ISO},
    {"harbour": "%b %d %Y", "north": ISO}, {"harbour": "%Y/%m/%d", "north": ISO},
])
def test_one_order_or_one_that_cannot_be_misread(forms: dict[str, str], tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, forms)
    assert seen_by(d230, tmp_path) == []


@pytest.mark.parametrize("form", ["%Y-%m-%d", "nothing", "{d}/{m}/x"])
def test_few_dates_none_or_broken_ones(form: str, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, {"harbour": DAY, "north": form}, days=12 if form == ISO else 300)
    assert seen_by(d230, tmp_path) == []


def test_versions_and_scores_are_no_dates(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, {"a": "", "b": ""}, cell=lambda d, _: f"{d.day + 20}.{d.month + 14}.{d.year}")
    assert seen_by(d230, tmp_path) == []


@pytest.mark.parametrize(("code", "severity"), [
    ("df['date'] = pd.to_datetime(df['date'], format='mixed')", Severity.HIGH),
    ("df['date'] = pd.to_datetime(df['date'], format='mixed', dayfirst=True)", Severity.INFO),
    ("df['date'] = pd.to_datetime(df['date'], format='%d/%m/%Y' if name == 'harbour' else None)", Severity.INFO),
])
def test_a_reader_that_knows_makes_it_a_remark(code: str, severity: Severity, tmp_path: Path) -> None:
    write(tmp_path / "data", {"harbour": DAY, "north": ISO})
    (tmp_path / "train.py").write_text("import pandas as pd\nfor name in ('harbour', 'north'):\n"
                                       f"    df = pd.read_csv(f'data/{{name}}.csv')\n    {code}\n")
    told = [f for f in of_run([], [tmp_path / "train.py"], tmp_path).findings if f.rule == "D230"]
    assert [f.severity for f in told] == [severity]
