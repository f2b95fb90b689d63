"""D186: ends of episodes that no field marks; D153 beside transitions; and what ends without a mark by design."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.examination import examine
from traindx_tools.on_data.used_by_code import with_use

Rows = dict[str, Any]
LIMIT = 30


def walks(seed: int = 0, episodes: int = 120, bound: float = 1.0, cut: float = 0.0) -> Rows:
    """A ball that is pushed until it leaves the table, or until time is over. `cut`: chance a row of an interruption.
    """
    rng = np.random.default_rng(seed)
    rows: dict[str, list[Any]] = {k: [] for k in ("state", "push", "gain", "state_after", "over", "limit", "walk")}
    for walk in range(episodes):
        place, speed = rng.normal(0, 0.05, 2)
        for step in range(LIMIT):
            push = rng.integers(0, 2)
            before = (place, speed)
            speed += (0.02 if push else -0.02) + rng.normal(0, 0.004)
            place += speed
            over, late = abs(place) > bound, step == LIMIT - 1 or rng.random() < cut
            for key, value in zip(rows, (before, push, 1.0, (place, speed), over, late and not over, walk),
                                  strict=True):
                rows[key].append(value)
            if over or late:
                break
    return {k: np.array(v, np.float32 if k.startswith(("state", "gain")) else None) for k, v in rows.items()}


def saved(folder: Path, rows: Rows, name: str = "log.npz") -> None:
    np.savez(folder / name, **rows)


def seen(folder: Path, rule: str = "D186") -> list[Finding]:
    report = examine([folder])
    assert not [n for n in report.notes if "failed" in n]
    return [f for f in report.findings if f.rule == rule and f.severity is not Severity.INFO]


def never(rows: Rows) -> Rows:
    return {**rows, "over": np.zeros(len(rows["over"]), bool)}


def half(rows: Rows) -> Rows:
    return {**rows, "over": rows["over"] & (rows["walk"] % 2 == 0)}


@pytest.mark.parametrize("change", [never, half])
@pytest.mark.parametrize("with_limit", [True, False])
def test_ends_that_no_field_marks(change: Callable[[Rows], Rows], with_limit: bool, tmp_path: Path) -> None:
    rows = change(walks())
    if not with_limit:
        rows.pop("limit")
    saved(tmp_path, rows)
    (found,) = seen(tmp_path)
    assert found.severity is Severity.HIGH
    assert (found.measured["own"], found.measured["following"]) == ("state", "state_after")
    assert found.measured["beyond"] == 1.0
    assert "over" in found.measured["fields"]
    assert found.measured["limit"] == LIMIT
    lost = int(walks()["over"].sum()) - int(rows["over"].sum())
    assert lost - 3 <= found.measured["unmarked"] <= lost  # the file's last row, and falls in the last row of all


def test_a_table_of_single_columns(tmp_path: Path) -> None:
    rows = never(walks(episodes=60))
    columns = {"place": rows["state"][:, 0], "speed": rows["state"][:, 1], "done": rows["over"].astype(int),
               "next_place": rows["state_after"][:, 0], "next_speed": rows["state_after"][:, 1]}
    lines = zip(*(c.tolist() for c in columns.values()), strict=True)
    (tmp_path / "log.csv").write_text("\n".join([",".join(columns), *(",".join(map(str, r)) for r in lines)]))
    (found,) = seen(tmp_path)
    assert found.measured["field"] == "done"


def test_recordings_that_were_cut_anywhere_say_little(tmp_path: Path) -> None:
    rows = walks(bound=9e9, cut=0.05)
    rows.pop("limit")
    saved(tmp_path, rows)
    (found,) = seen(tmp_path)
    assert found.severity is Severity.LOW


def healthy(rows: Rows) -> Rows:
    return rows


def healthy_without_limits(rows: Rows) -> Rows:
    return {k: v for k, v in rows.items() if k != "limit"}


def healthy_first_rows(rows: Rows) -> Rows:
    first = np.append(True, rows["over"][:-1] | rows["limit"][:-1])
    return {**{k: v for k, v in rows.items() if k not in ("over", "limit")}, "begins": first}


def healthy_not_done(rows: Rows) -> Rows:
    return {**{k: v for k, v in rows.items() if k != "over"}, "not_done": (~rows["over"]).astype(np.float32)}


def healthy_shuffled(rows: Rows) -> Rows:
    order = np.random.default_rng(0).permutation(len(rows["over"]))
    return {k: v[order] for k, v in never(rows).items()}


def healthy_without_any_field(rows: Rows) -> Rows:
    return {k: v for k, v in rows.items() if k not in ("over", "limit")}


def healthy_limit_alone(rows: Rows) -> Rows:
    return never({k: v for k, v in walks(bound=9e9).items() if k != "limit"})


def healthy_prices(rows: Rows) -> Rows:
    """Closing prices and those of the day before, of stocks one after another, beside days of a dividend."""
    rng = np.random.default_rng(1)
    price = np.exp(np.cumsum(rng.normal(0, 0.02, (40, 100)), axis=1))
    before = np.concatenate([np.ones((40, 1)), price[:, :-1]], axis=1)
    return {"price": price.ravel(), "price_before": before.ravel(), "dividend": rng.random(4000) < 0.01,
            "traded": rng.lognormal(0, 1, 4000)}


@pytest.mark.parametrize("make", [
    healthy, healthy_without_limits, healthy_first_rows, healthy_not_done, healthy_shuffled, healthy_without_any_field,
    healthy_limit_alone, healthy_prices])
def test_healthy_twins(make: Callable[[Rows], Rows], tmp_path: Path) -> None:
    saved(tmp_path, make(walks()))
    assert seen(tmp_path) == []


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3))])
def test_the_next_state_is_no_shifted_field(seed: int, tmp_path: Path) -> None:
    saved(tmp_path, walks(seed))
    assert seen(tmp_path, "D153") == []


@pytest.mark.parametrize(("code", "severity"), [
    ("y = r + g * (1 - z['over']) * v(z['state_after'])", Severity.HIGH),
    ("end = np.diff(z['walk']) != 0\ny = r + g * ~end * v(z['state_after'])", Severity.LOW),
    ("print('hello')", Severity.HIGH)])
def test_the_code_decides(code: str, severity: Severity, tmp_path: Path) -> None:
    saved(tmp_path, never({k: v for k, v in walks().items() if k != "limit"}))
    (tmp_path / "train.py").write_text(code)
    assert [f.severity for f in with_use(seen(tmp_path), [tmp_path / "train.py"])] == [severity]


def test_values_that_are_no_numbers_and_torn_files(tmp_path: Path) -> None:
    rows = never(walks())
    rows["state"][:] = np.nan
    saved(tmp_path, rows)
    saved(tmp_path, {k: v[:3] for k, v in rows.items()}, "short.npz")
    (tmp_path / "torn.npz").write_bytes((tmp_path / "log.npz").read_bytes()[:500])
    assert seen(tmp_path) == []
