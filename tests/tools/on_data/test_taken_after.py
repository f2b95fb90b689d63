"""Times of one part behind those that they precede everywhere else, and times that only look so."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from table_making import table

from traindx_tools.finding import Finding
from traindx_tools.on_data.rules import d166_taken_after

Seen = Callable[[ModuleType, Path], list[Finding]]
ROWS = 1500
Columns = dict[str, Any]


def written(days: Any, form: str) -> Any:
    """Days as ISO dates, seconds or microseconds since 1970, or whole numbers."""
    if form == "text":
        return [(datetime(2023, 1, 1) + timedelta(days=float(d))).date().isoformat() if d == d else "" for d in days]
    if form == "days":
        return days.astype(np.int64)
    return ((1.6e9 + days * 86_400) * (1e6 if form == "microseconds" else 1.0)).astype(np.int64)


def customers(rng: np.random.Generator, share: float = 0.6, odd: int = 2) -> Columns:
    """Customers of five regions, with features as of a day before the outcome; in one region some as of a day after."""
    region, outcome = rng.integers(0, 5, ROWS), rng.integers(100, 300, ROWS).astype(float)
    taken = outcome - rng.integers(1, 40, ROWS)
    late = (region == odd) & (rng.random(ROWS) < share)
    taken[late] = outcome[late] + rng.integers(1, 20, int(late.sum()))
    churn = rng.integers(0, 2, ROWS)
    return {"customer_id": np.arange(ROWS) + 1000, "region": [f"r{k}" for k in region], "taken": taken,
            "calls": (rng.normal(size=ROWS) + churn).round(2), "outcome": outcome, "churn": churn}


def in_form(made: Columns, form: str, taken: str = "as_of", outcome: str = "outcome_date") -> Columns:
    names = {"taken": taken, "outcome": outcome}
    return {names.get(n, n): written(v, form) if n in names else v for n, v in made.items()}


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("form", ["text", "epoch", "microseconds", "days"])
def test_features_of_one_region_taken_after_the_outcome(kind: str, form: str, seen_by: Seen, tmp_path: Path) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    table(tmp_path / "train", kind, in_form(customers(np.random.default_rng(0)), form))
    (told,) = seen_by(d166_taken_after, tmp_path)
    assert (told.measured["field"], told.measured["part"]) == ("as_of", "'r2'")
    assert "as_of lies behind outcome_date" in told.statement
    assert told.measured["others"] == 0.0
    assert "by 10.0 days at the median" in told.statement or form == "days"


def test_names_say_nothing(seen_by: Seen, tmp_path: Path) -> None:
    table(tmp_path / "train", "csv", in_form(customers(np.random.default_rng(1)), "text", "q7", "q3"))
    (told,) = seen_by(d166_taken_after, tmp_path)
    assert told.measured["fields"] == ("q7", "q3")


def test_the_outcome_of_another_table(seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    made = in_form(customers(rng), "text")
    order = rng.permutation(ROWS)
    table(tmp_path / "features", "csv", {n: made[n] for n in ("customer_id", "region", "as_of", "calls")})
    names = ("customer_id", "outcome_date", "churn")
    table(tmp_path / "labels", "csv", {n: [made[n][i] for i in order] for n in names})
    (told,) = seen_by(d166_taken_after, tmp_path)
    assert "outcome_date of labels.csv" in told.statement


def test_one_file_of_sensor_windows(seen_by: Seen, tmp_path: Path) -> None:
    """The last reading of a window in seconds and the failure in seconds, in npz; of one file it is the next window."""
    rng = np.random.default_rng(3)
    for i in range(5):
        failure = 1.7e9 + np.cumsum(rng.integers(600, 4000, 200))
        reading = failure - rng.integers(60, 500, 200) * (-1 if i == 3 else 1)
        np.savez(tmp_path / f"pump_{i}.npz", x=rng.normal(size=(200, 6)), last_reading=reading, failure_time=failure)
    (told,) = seen_by(d166_taken_after, tmp_path)
    assert told.measured["shard"] == "pump_3.npz"
    assert "last_reading lies behind failure_time in 200 rows of pump_3.npz" in told.statement


def test_a_window_that_all_rows_share(seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    made = customers(rng)
    made["taken"] = np.where(made["taken"] > made["outcome"], 210.0, 100 + made["taken"] % 90)
    made["outcome"] = np.full(ROWS, 200.0)
    table(tmp_path / "train", "csv", in_form(made, "text", "last_event", "label_from"))
    (told,) = seen_by(d166_taken_after, tmp_path)
    assert told.measured["fields"] == ("last_event", "label_from")


def in_order(rng: np.random.Generator) -> Columns:
    return in_form(customers(rng, share=0.0), "text")


def in_no_order(rng: np.random.Generator) -> Columns:
    made = customers(rng)
    made["taken"] = made["outcome"] + rng.integers(-30, 30, ROWS)
    return in_form(made, "text")


def a_few_everywhere(rng: np.random.Generator) -> Columns:
    made = customers(rng, share=0.0)
    made["taken"] = np.where(rng.random(ROWS) < 0.03, made["outcome"] + 3, made["taken"])
    return in_form(made, "epoch")


def a_few_of_one_region(rng: np.random.Generator) -> Columns:
    """Three wrong entries of one region, and an outcome only where there is one."""
    made = customers(rng, share=0.01)
    made["outcome"] = np.where(made["churn"] == 1, made["outcome"], np.nan)
    return in_form(made, "text")


def later_by_design(rng: np.random.Generator) -> Columns:
    """A second visit is behind the first, in all regions."""
    made = customers(rng, share=0.0)
    made["taken"] = made["outcome"] + rng.integers(1, 300, ROWS)
    return in_form(made, "text", "second_visit", "first_visit")


def a_region_of_other_years(rng: np.random.Generator) -> Columns:
    made = customers(rng, share=0.0)
    later = 400.0 * np.array([r == "r2" for r in made["region"]])
    made["taken"], made["outcome"] = made["taken"] + later, made["outcome"] + later
    return in_form(made, "text")


@pytest.mark.parametrize("make", [in_order, in_no_order, a_few_everywhere, a_few_of_one_region, later_by_design,
                                  a_region_of_other_years])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_times_that_only_look_so(make: Any, kind: str, seen_by: Seen, tmp_path: Path) -> None:
    table(tmp_path / "train", kind, make(np.random.default_rng(5)))
    assert seen_by(d166_taken_after, tmp_path) == []


def test_tables_without_times(seen_by: Seen, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("when,until\n,\n2023-13-99,x\n" * 40)
    (tmp_path / "b.csv").write_text("when,until\n")
    np.savez(tmp_path / "c.npz", time=np.full(300, np.nan), date=np.full(300, np.nan))
    assert seen_by(d166_taken_after, tmp_path) == []
