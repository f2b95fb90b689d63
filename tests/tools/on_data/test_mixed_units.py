"""D185: numbers of one field in two units, told by the groups of another field; and groups that differ by nature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.examination import examine
from traindx_tools.on_data.used_by_code import with_use

Rng = np.random.Generator


def table(folder: Path, columns: dict[str, Sequence[Any]], name: str = "log") -> None:
    rows = zip(*columns.values(), strict=True)
    (folder / f"{name}.csv").write_text("\n".join([",".join(columns), *(",".join(map(str, r)) for r in rows)]) + "\n")


def seen(folder: Path) -> list[Finding]:
    report = examine([folder])
    assert not [n for n in report.notes if "failed" in n]
    return [f for f in report.findings if f.rule == "D185"]


def moments(rng: Rng, rows: int = 900) -> tuple[Any, Any]:
    return 1.65e9 + rng.integers(0, 10_000_000, rows), rng.choice(["north", "south", "east"], rows, p=(0.5, 0.3, 0.2))


@pytest.mark.parametrize("factor", [1e3, 1e6, 1e9])
def test_moments_of_one_source_in_another_unit(factor: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    when, desk = moments(rng)
    table(tmp_path, {"who": rng.integers(0, 200, 900), "desk": desk, "seen_at": [
        int(t * factor) if d == "east" else int(t) for t, d in zip(when, desk, strict=True)]})
    (found,) = seen(tmp_path)
    assert (found.measured["by"], found.measured["parts"], found.measured["factor"]) == ("desk", ("east",), factor)
    assert found.severity is Severity.MEDIUM


def test_moments_that_no_field_tells_apart(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    when, desk = moments(rng)
    table(tmp_path, {"desk": desk, "when": [int(t * (1000 if rng.random() < 0.3 else 1)) for t in when]})
    (found,) = seen(tmp_path)
    assert found.measured["by"] == "its magnitude"


@pytest.mark.parametrize(("factor", "kinds"), [(60, 2), (1000, 2), (3600, 2), (1000, 5)])
def test_a_measurement_of_groups_in_another_unit(factor: int, kinds: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    site = rng.integers(0, kinds, 800)
    odd = {0} if kinds == 2 else {0, 3}
    values = [round(float(v) * (factor if s in odd else 1), 4) for v, s in zip(rng.lognormal(1, 0.6, 800), site,
                                                                               strict=True)]
    table(tmp_path, {"site": [f"site {chr(97 + s)}" for s in site], "load": rng.normal(size=800).round(3),
                     "pause": values})
    (found,) = seen(tmp_path)
    assert (found.measured["field"], found.measured["factor"]) == ("pause", float(factor))
    assert len(found.measured["parts"]) == len(odd)
    assert found.severity is Severity.MEDIUM


def test_times_that_begin_anew_and_a_field_that_is_no_origin(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    mode = rng.choice(["fast", "slow"], 700)
    table(tmp_path, {"mode": mode, "time": [
        round(float(t) * (1000 if m == "slow" else 1), 3) for t, m in zip(rng.gamma(2, 30, 700), mode, strict=True)]})
    assert [f.severity for f in seen(tmp_path)] == [Severity.MEDIUM]
    (tmp_path / "log.csv").write_text((tmp_path / "log.csv").read_text().replace("time", "weight", 1))
    assert [f.severity for f in seen(tmp_path)] == [Severity.LOW]


def test_training_and_held_out_files_in_other_units(tmp_path: Path) -> None:
    for split, factor in (("train", 1), ("test", 1000)):
        when, desk = moments(np.random.default_rng(factor))
        table(tmp_path, {"desk": desk, "when": (when * factor).astype(int)}, split)
    (found,) = seen(tmp_path)
    assert (found.measured["by"], found.measured["parts"]) == ("file", ("test.csv",))


def healthy_one_unit(folder: Path, rng: Rng) -> None:
    when, desk = moments(rng)
    table(folder, {"desk": desk, "when": when.astype(int), "load": rng.lognormal(0, 2, 900).round(4)})


def healthy_two_columns(folder: Path, rng: Rng) -> None:
    when, desk = moments(rng)
    table(folder, {"desk": desk, "when": when.astype(int), "when_ms": (when * 1000).astype(int)})


def healthy_long_table(folder: Path, rng: Rng) -> None:
    """The kind of number stands beside it."""
    kind = rng.choice(["delay_s", "delay_ms"], 900)
    table(folder, {"quantity": kind, "value": [round(float(v) * (1000 if k == "delay_ms" else 1), 3) for v, k in zip(
        rng.lognormal(0, 0.5, 900), kind, strict=True)]})


def healthy_unit_beside(folder: Path, rng: Rng) -> None:
    kind = rng.choice(["s", "ms"], 900)
    table(folder, {"given_in": kind, "when": [int(t) * (1000 if k == "ms" else 1) for t, k in zip(
        moments(rng)[0], kind, strict=True)]})


def healthy_sizes_by_nature(folder: Path, rng: Rng) -> None:
    """A mouse and an elephant: neither the ratio nor the form is that of a unit."""
    kind = rng.choice(["mouse", "elephant"], 900)
    table(folder, {"animal": kind, "mass": [round(float(4e6 * rng.lognormal(0, 0.3) if k == "elephant" else
                                                  21 * rng.lognormal(0, 0.1)), 3) for k in kind]})


def healthy_files_by_year(folder: Path, rng: Rng) -> None:
    for year in range(4):
        when, desk = moments(rng)
        table(folder, {"desk": desk, "time": (when + 3e7 * year).astype(int), "age": 10.0 ** year + rng.random(900)},
              f"part_{year}")


def healthy_few_wrong_entries(folder: Path, rng: Rng) -> None:
    when, desk = moments(rng)
    table(folder, {"desk": desk, "when": [int(t) * (1000 if i in (5, 99) else 1) for i, t in enumerate(when)]})


def healthy_levels_of_shops(folder: Path, rng: Rng) -> None:
    shop = rng.integers(0, 6, 900)
    table(folder, {"shop": [f"shop {chr(97 + s)}" for s in shop],
                   "price": (10.0 ** shop * rng.lognormal(0, 0.4, 900)).round(3)})


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
@pytest.mark.parametrize("make", [
    healthy_one_unit, healthy_two_columns, healthy_long_table, healthy_unit_beside, healthy_sizes_by_nature,
    healthy_few_wrong_entries, healthy_files_by_year, healthy_levels_of_shops])
def test_healthy_twins(make: Callable[[Path, Rng], None], seed: int, tmp_path: Path) -> None:
    make(tmp_path, np.random.default_rng(seed))
    assert seen(tmp_path) == []


@pytest.mark.parametrize(("code", "severity"), [
    ("rows = sorted(rows, key=lambda r: r['seen_at'])", Severity.HIGH),
    ("t = np.where(t['seen_at'] > 1e11, t['seen_at'] / 1000, t['seen_at'])", Severity.INFO),
    ("print('hello')", Severity.MEDIUM)])
def test_the_code_decides(code: str, severity: Severity, tmp_path: Path) -> None:
    when, desk = moments(np.random.default_rng(0))
    table(tmp_path, {"desk": desk, "seen_at": [
        int(t) * (1000 if d == "east" else 1) for t, d in zip(when, desk, strict=True)]})
    (tmp_path / "train.py").write_text(code)
    assert [f.severity for f in with_use(seen(tmp_path), [tmp_path / "train.py"])] == [severity]


def test_empty_and_torn_tables_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("desk,when\nnorth,1650000000\nsouth,")
    table(tmp_path, {"desk": ["a", "b"] * 40, "when": ["nan", "inf"] * 40}, "b")
    table(tmp_path, {"desk": ["a", "b"] * 40, "when": [0, 0] * 40}, "c")
    assert seen(tmp_path) == []
