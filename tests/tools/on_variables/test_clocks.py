"""Joins by times of different units and zones, and joins that are as they are meant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pandas")

import pandas as pd

from traindx_tools.on_variables import joined
from traindx_tools.on_variables.clocks import shift_of_partners, shift_of_values, units_differ
from traindx_tools.on_variables.rules import v104_clocks_differ

HOURS = 1500


class Notes:
    rank, began = 0, True

    def __init__(self) -> None:
        self.findings: list[Any] = []

    def finding(self, finding: Any) -> None:
        self.findings.append(finding)


@pytest.fixture
def told() -> Iterator[Callable[[Callable[[], Any]], list[Any]]]:
    """The findings of a program."""
    def told(program: Callable[[], Any]) -> list[Any]:
        notes = Notes()
        made = joined.attach(SimpleNamespace(recorder=notes, at_end=[]))
        try:
            program()
            made.finish()
        finally:
            joined.detach()
        return notes.findings
    yield told
    joined.detach()


def utc(step: str = "h", count: int = HOURS) -> Any:
    return pd.date_range("2024-01-01", periods=count, freq=step, tz="UTC")


def weather(times: Any, seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    day = np.arange(len(times)) % 24
    return pd.DataFrame({"time": times, "warm": 10 + 8 * np.sin(2 * np.pi * day / 24) + random.normal(size=len(times))})


def load(times: Any, of: Any) -> Any:
    noise = np.random.default_rng(1).normal(size=len(times))
    return pd.DataFrame({"time": times, "load": 50 - 2 * of["warm"].to_numpy() + noise})


def naive(times: Any, zone: str = "UTC") -> Any:
    return times.tz_convert(zone).tz_localize(None)


def two_zones(join: Callable[[Any, Any], Any]) -> None:
    table = weather(utc())
    target = load(naive(utc()), table)
    join(target, table.assign(time=naive(utc(), "Asia/Tokyo")))


def from_texts(join: Callable[[Any, Any], Any], hours: int = 5) -> None:
    """No zone is known: the times were read from a file."""
    table = weather(pd.DatetimeIndex(naive(utc()).to_numpy()))
    target = load(table["time"].to_numpy(), table)
    join(target, table.assign(time=table["time"] + pd.Timedelta(hours=hours)))


def merged(one: Any, other: Any) -> Any:
    return one.merge(other, on="time", how="left")


def by_index(one: Any, other: Any) -> Any:
    return one.set_index("time").join(other.set_index("time"))


def asof(one: Any, other: Any) -> Any:
    return pd.merge_asof(one, other, on="time")


@pytest.mark.parametrize("join", [merged, by_index, asof, lambda a, b: pd.merge(a, b, left_on="time", right_on="time")])
def test_zones_that_the_program_took_off(told: Any, join: Any) -> None:
    (found,) = told(lambda: two_zones(join))
    assert (found.rule, found.measured["kind"], found.measured["hours"]) == ("V104", "zone", 9.0)
    assert found.bearing.value == "cause"
    assert found.where.file == __file__


@pytest.mark.parametrize("join", [merged, asof])
def test_numbers_that_go_together_some_hours_apart_are_a_sign(told: Any, join: Any) -> None:
    (found,) = told(lambda: from_texts(join))
    assert (found.measured["kind"], found.measured["hours"], found.bearing.value) == ("values", 5.0, "sign")


def test_partners_that_stand_hours_away(told: Any) -> None:
    def program() -> None:
        days = pd.date_range("2024-01-01", periods=200, freq="D")
        a = pd.DataFrame({"time": days, "a": 1})
        merged(a, pd.DataFrame({"time": days + pd.Timedelta(hours=2), "b": 1}))

    (found,) = told(program)
    assert (found.measured["kind"], found.measured["hours"], found.bearing.value) == ("shift", 2.0, "cause")


def seconds() -> Any:
    return 1.7e9 + 60.0 * np.arange(300)


@pytest.mark.parametrize("program", [
    lambda: np.searchsorted(1e3 * seconds(), seconds()), lambda: np.interp(seconds(), 1e9 * seconds(), seconds()),
    lambda: pd.merge_asof(pd.DataFrame({"t": seconds().astype(int)}),
                          pd.DataFrame({"t": (1000 * seconds()).astype(int), "b": 1.0}), on="t")])
def test_units_that_differ(told: Any, program: Any) -> None:
    (found,) = told(program)
    assert (found.measured["kind"], found.bearing.value) == ("unit", "cause")


def lagged() -> None:
    """The series itself of some hours before, as a feature."""
    table = weather(pd.DatetimeIndex(naive(utc()).to_numpy()))
    merged(table, table.assign(time=table["time"] + pd.Timedelta(hours=6)).rename(columns={"warm": "before"}))


def gaps() -> None:
    table = weather(naive(utc()))
    merged(load(naive(utc()), table), table.iloc[::2])


def other_tables() -> None:
    a = pd.DataFrame({"id": np.arange(100), "a": 1.0})
    a.merge(pd.DataFrame({"id": np.arange(40, 140), "b": 2.0}), on="id")
    a.merge(pd.DataFrame({"name": ["x"], "b": 2.0}), how="cross")
    np.searchsorted(np.arange(100.0), np.random.default_rng(0).random(200))
    np.interp(np.linspace(0, 1, 100), np.linspace(0, 1e3, 100), np.zeros(100))


@pytest.mark.parametrize("program", [
    lambda: merged(load(naive(utc()), weather(utc())), weather(naive(utc()))),
    lambda: two_zones(lambda a, b: merged(a, b.assign(time=a["time"].to_numpy()))),
    lambda: asof(load(utc(), weather(utc())), weather(utc())), lagged, gaps, other_tables,
    lambda: np.searchsorted(seconds(), seconds() + 5.0),
], ids=["one zone", "set right", "with a zone", "a lag", "gaps", "no times", "one unit"])
def test_joins_that_are_meant(told: Any, program: Any) -> None:
    assert told(program) == []


def test_a_join_is_the_programs_own(told: Any) -> None:
    table = weather(naive(utc()))
    other = load(naive(utc()), table)
    plain, seen = merged(other, table), []
    told(lambda: seen.append(merged(other, table)))
    pd.testing.assert_frame_equal(plain, seen[0])
    assert not hasattr(pd.merge, "__wrapped__")


def test_broken_inputs(told: Any) -> None:
    def program() -> None:
        empty = pd.DataFrame({"time": pd.to_datetime([]), "a": []})
        merged(empty, empty.rename(columns={"a": "b"}))
        times = pd.to_datetime([None, "2024-01-01"])
        merged(pd.DataFrame({"time": times, "a": 1.0}), pd.DataFrame({"time": times, "b": 1.0}))
        with pytest.raises(KeyError):
            pd.DataFrame({"a": [1]}).merge(pd.DataFrame({"b": [1]}), on="c")

    assert told(program) == []
    none = np.zeros(0)
    assert units_differ(none, none) is None
    assert shift_of_partners(none.astype(np.int64), none.astype(np.int64)) is None
    assert shift_of_values(none.astype(np.int64), none.astype(np.int64), {}, {}) is None
    assert list(v104_clocks_differ.check([])) == []
    assert Path(joined.__file__).exists()
