"""Stored orders of samples, epoch by epoch."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.column import Column
from traindx_tools.on_data.rules import d135_same_order
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View


def found(folder: Path) -> list[Finding]:
    report = examine([folder])
    assert not report.notes
    return [f for f in report.findings if f.rule == "D135" and f.severity is not Severity.INFO]


def files(folder: Path, orders: Any) -> None:
    for i, order in enumerate(orders):
        np.save(folder / f"order_epoch{i}.npy", order)


def fields(folder: Path, orders: Any) -> None:
    np.savez(folder / "sampler.npz", **{f"epoch_{i}": o for i, o in enumerate(orders)})


def rows(folder: Path, orders: Any) -> None:
    np.save(folder / "sampler_indices.npy", np.stack(orders))


def lines(folder: Path, orders: Any) -> None:
    (folder / "orders.jsonl").write_text("".join(json.dumps({"order": o.tolist()}) + "\n" for o in orders))


def below_each_other(folder: Path, orders: Any) -> None:
    with (folder / "seen.csv").open("w", newline="") as stream:
        out = csv.writer(stream)
        out.writerow(["epoch", "sample_id"])
        out.writerows([i, int(s)] for i, order in enumerate(orders) for s in order)


WRITERS = (files, fields, rows, lines, below_each_other)


def drawn(epochs: int = 5, samples: int = 200) -> Any:
    rng = np.random.default_rng(0)
    return [rng.permutation(samples) for _ in range(epochs)]


@pytest.mark.parametrize("write", WRITERS)
def test_two_epochs_of_one_order(write: Callable[[Path, Any], None], tmp_path: Path) -> None:
    orders = drawn()
    write(tmp_path, orders)
    assert not found(tmp_path)
    orders[3] = orders[1]
    write(tmp_path, orders)
    (told,) = found(tmp_path)
    assert (told.measured["epoch"], told.measured["earlier"], told.measured["same"]) == (3, 1, 1)


@pytest.mark.parametrize("write", WRITERS)
def test_samples_in_their_own_order_and_rows_that_are_no_orders(write: Any, tmp_path: Path) -> None:
    write(tmp_path, [np.arange(200)] * 5)
    assert not found(tmp_path)
    write(tmp_path, [np.random.default_rng(1).integers(0, 50, 200)] * 5)
    assert not found(tmp_path)


def test_ranks_of_one_epoch_and_an_order_without_a_name(tmp_path: Path) -> None:
    (order,) = drawn(1)
    for rank in range(4):
        np.save(tmp_path / f"order_epoch0_rank{rank}.npy", order)
        np.save(tmp_path / f"ids_{rank}.npy", order)
    assert not found(tmp_path)


def test_an_epoch_that_was_cut_and_one_of_nothing(tmp_path: Path) -> None:
    orders = drawn()
    orders[2], orders[4] = orders[1], orders[4][:90]
    below_each_other(tmp_path, orders)
    assert len(found(tmp_path)) == 1
    (tmp_path / "seen.csv").write_text("epoch,sample_id\n")
    (tmp_path / "order_epoch0.npy").write_bytes(b"\x93NUMPY")
    assert not found(tmp_path)


def test_no_false_alarm_in_many_draws() -> None:
    rng = np.random.default_rng(2)
    orders = np.stack([rng.permutation(16) for _ in range(1000)])
    shard = Shard("orders.npy", "npy", {"order": Column("order", "number", orders, "orders.npy")}, 1000, 1000)
    assert not list(d135_same_order.check(View((DataSet("orders", (shard,)),))))
