"""Equations between channels or columns that some rows break."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.exact_relations import broken_relations
from traindx_tools.on_data.rules import d170_relation_broken as d170

Seen = Callable[[ModuleType, Path], list[Finding]]
Table = dict[str, np.ndarray[Any, Any]]


def write(path: Path, table: Table) -> None:
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(table)
        out.writerows(zip(*(c.tolist() for c in table.values()), strict=True))


def leads(rng: np.random.Generator, rows: int = 60) -> np.ndarray[Any, Any]:
    """int16 shape (rows, 4, 400): two leads, their difference and their mean, rounded as a recorder does."""
    t = np.arange(400) / 40
    one = np.sin(t * rng.uniform(0.8, 1.2, (rows, 1)) + rng.uniform(0, 6, (rows, 1))) * 300
    two = one * rng.uniform(0.3, 0.9, (rows, 1)) + 100 * np.cos(3 * t + rng.uniform(0, 6, (rows, 1)))
    return np.asarray(np.rint(np.stack([one, two, two - one, (one + two) / 2], axis=1)), np.int16)


def bills(rng: np.random.Generator, rows: int = 900) -> Table:
    net, fee = rng.gamma(2, 40, rows).round(2), rng.gamma(2, 4, rows).round(2)
    return {"net": net, "fee": fee, "total": (net + fee).round(2), "items": rng.integers(1, 40, rows),
            "kind": rng.choice(["web", "shop"], rows)}


@pytest.mark.parametrize("at", [slice(20, 31), slice(3, 6)])
def test_two_leads_that_were_exchanged_in_some_records(at: slice, tmp_path: Path, seen_by: Seen) -> None:
    x = leads(np.random.default_rng(0))
    x[at] = x[at][:, [0, 3, 2, 1]]
    np.savez(tmp_path / "a.npz", signal=x, rate=np.random.default_rng(1).normal(60, 5, 60))
    (told,) = seen_by(d170, tmp_path)
    assert told.severity is Severity.HIGH
    assert "channel 1 of signal and channel 3 of signal are exchanged" in told.statement
    assert f"rows {at.start}..{at.stop - 1} of a.npz" in told.statement


def test_healthy_leads_and_one_with_a_recorder_of_its_own_are_quiet(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(0)
    x = leads(rng).astype(np.float32)
    np.savez(tmp_path / "a.npz", signal=x)
    assert seen_by(d170, tmp_path) == []
    x[10:20] += rng.normal(0, 40, x[10:20].shape).astype(np.float32)  # noise breaks the equation, nothing mends it
    np.savez(tmp_path / "a.npz", signal=x)
    assert seen_by(d170, tmp_path) == []


def test_columns_exchanged_and_another_unit_in_rows_of_a_table(tmp_path: Path, seen_by: Seen) -> None:
    bill = bills(np.random.default_rng(2))
    mixed = np.isin(np.arange(900), np.arange(300, 341))
    write(tmp_path / "a.csv", bill | {"fee": np.where(mixed, bill["total"], bill["fee"]),
                                      "total": np.where(mixed, bill["fee"], bill["total"])})
    (told,) = seen_by(d170, tmp_path)
    assert "fee and total are exchanged" in told.statement
    assert "sign" not in told.statement, "a price below 0 is not plausible"
    assert told.severity is Severity.HIGH
    write(tmp_path / "a.csv", bill | {"fee": np.where(np.arange(900) % 7 == 3, bill["fee"] * 100, bill["fee"])})
    (told,) = seen_by(d170, tmp_path)
    assert "once fee is divided by 100" in told.statement
    assert told.severity is Severity.MEDIUM


def test_a_product_is_an_equation_of_logarithms(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(3)
    height, weight = rng.normal(1.7, 0.1, 600), rng.normal(70, 10, 600)
    table = {"height": height, "weight": weight, "bmi": weight / height**2, "age": rng.normal(40, 9, 600)}
    write(tmp_path / "a.csv", table)
    assert seen_by(d170, tmp_path) == []
    table["weight"] = np.where(np.arange(600) // 50 == 2, table["bmi"], weight)
    table["bmi"] = np.where(np.arange(600) // 50 == 2, weight, table["bmi"])
    write(tmp_path / "a.csv", table)
    (told,) = seen_by(d170, tmp_path)
    assert "weight" in told.statement
    assert "height" in told.statement
    assert "rows 100..149" in told.statement


def test_rows_of_another_kind_are_declared_and_two_proportions_are_no_equation(tmp_path: Path, seen_by: Seen) -> None:
    bill = bills(np.random.default_rng(4))
    refund = np.arange(900) % 9 == 1
    fee = np.where(refund, bill["fee"] + 2 * bill["net"], bill["fee"])
    write(tmp_path / "a.csv", bill | {"fee": fee, "kind": np.where(refund, "refund", bill["kind"])})
    assert [f for f in seen_by(d170, tmp_path) if f.severity is not Severity.INFO] == []
    price = np.random.default_rng(5).gamma(3, 20, 900)
    paid = np.where(np.arange(900) % 5 == 0, 0.8 * price, price)
    write(tmp_path / "a.csv", {"price": price, "paid": paid, "x": np.random.default_rng(6).normal(size=900)})
    assert seen_by(d170, tmp_path) == []


def test_a_field_that_names_the_rows_makes_it_a_remark(tmp_path: Path, seen_by: Seen) -> None:
    bill = bills(np.random.default_rng(7))
    other = np.arange(900) % 9 == 1
    table = bill | {"fee": np.where(other, bill["total"], bill["fee"]),
                    "total": np.where(other, bill["fee"], bill["total"])}
    write(tmp_path / "a.csv", table)
    assert [f.severity for f in seen_by(d170, tmp_path)] == [Severity.MEDIUM]
    write(tmp_path / "a.csv", table | {"kind": np.where(other, "other", bill["kind"])})
    assert [f.severity for f in seen_by(d170, tmp_path)] == [Severity.INFO]


@pytest.mark.parametrize("x", [
    np.random.default_rng(0).normal(size=(400, 1, 6)), np.zeros((50, 1, 4)), np.ones((3, 1, 3)),
    np.random.default_rng(1).normal(size=(400, 1, 1)), np.empty((0, 1, 4)),
    np.random.default_rng(2).integers(0, 2, (300, 1, 5)).astype(float),
])  # fmt: skip
def test_noise_constants_and_too_few_hold_no_equation(x: np.ndarray[Any, Any]) -> None:
    assert list(broken_relations(x)) == []


def taxed(rows: int = 1500) -> Table:
    rng = np.random.default_rng(11)
    category = rng.choice(["food", "books", "toys", "tools", "shoes", "lamps"], rows)
    rate = np.where(np.isin(category, ["food", "books"]), 1.07, 1.19)
    gross, shipping = rng.gamma(3, 30, rows).round(2), rng.gamma(3, 4, rows).round(2)
    return {"gross": gross, "shipping": shipping, "net": ((gross - shipping) / rate).round(2), "category": category}


def test_rates_by_several_categories_are_declared_and_without_a_field_they_are_not(
        tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path / "a.csv", taxed())
    assert [f.severity for f in seen_by(d170, tmp_path)] in ([], [Severity.INFO])
    table = taxed() | {"category": np.random.default_rng(12).choice(list("abcdef"), 1500)}  # tells nothing of the rate
    write(tmp_path / "a.csv", table)
    assert Severity.MEDIUM in [f.severity for f in seen_by(d170, tmp_path)]


def test_a_column_that_is_mostly_zero_is_no_equation(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(13)
    claims = rng.random(3000) < 0.07
    write(tmp_path / "a.csv", {"exposure": rng.random(3000).round(3), "age": rng.integers(18, 90, 3000),
                               "power": rng.integers(4, 15, 3000),
                               "amount": np.where(claims, rng.pareto(2, 3000) * 900 + 10, 0).round(2)})
    assert seen_by(d170, tmp_path) == []
