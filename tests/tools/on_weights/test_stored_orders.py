"""Stored orders that are none: an index twice, another missing, beside siblings that are permutations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import of_run

Array = np.ndarray[Any, Any]


def orders(seed: int = 0, blocks: int = 5, length: int = 12) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    made: dict[str, Array] = {}
    for i in range(blocks):
        made[f"flow.{i}.order"] = rng.permutation(length).astype(np.int64)
        made[f"flow.{i}.weight"] = rng.normal(size=(length, length)).astype(np.float32)
    return made


def told(folder: Path, tensors: dict[str, Array]) -> list[Finding]:
    np.savez(folder / "model.npz", **tensors)  # type: ignore[arg-type]
    return [f for f in of_run([str(folder / "model.npz")]).findings if f.rule == "W164"]


def test_an_index_stands_twice(tmp_path: Path) -> None:
    made = orders()
    order = made["flow.3.order"]
    missing, twice = int(order[7]), int(order[2])
    order[7] = twice
    (found,) = told(tmp_path, made)
    assert (found.severity, found.where.module) == (Severity.HIGH, "flow.3.order")
    assert (found.measured["twice"], found.measured["missing"]) == ((twice,), (missing,))
    assert f"{twice} stands more than once and {missing} is missing" in found.statement


def drawn(made: dict[str, Array]) -> None:
    for name in [n for n in made if n.endswith("order")]:
        made[name] = np.random.default_rng(len(name)).integers(0, 12, 12)


def part(made: dict[str, Array]) -> None:
    made["flow.1.order"] = np.sort(np.random.default_rng(2).choice(400, 12, replace=False))


def lone(made: dict[str, Array]) -> None:
    for k in (1, 2, 3, 4):
        del made[f"flow.{k}.order"]
    made["flow.0.order"][0] = made["flow.0.order"][1]


def choosing(made: dict[str, Array]) -> None:
    made["flow.2.order"] = np.array([0] * 6 + [1] * 6)


@pytest.mark.parametrize("change", [None, drawn, part, lone, choosing])
def test_orders_and_tables_that_choose(change: Any, tmp_path: Path) -> None:
    made = orders()
    if change is not None:
        change(made)
    assert told(tmp_path, made) == []


def test_empty_and_negative_numbers(tmp_path: Path) -> None:
    made = orders() | {f"part.{i}.rows": np.zeros(0, np.int64) for i in range(4)}
    made["flow.4.order"] = -made["flow.4.order"]
    assert told(tmp_path, made) == []


def one(order: Array, rng: np.random.Generator) -> dict[str, Array]:
    """A file that keeps one order, beside its weights."""
    return {"shuffle.order": order, "shuffle.weight": rng.normal(size=(len(order), 8)).astype(np.float32)}


@pytest.mark.parametrize("length", [64, 900])
def test_a_long_order_without_siblings(length: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(length)
    order = rng.permutation(length)
    order[length // 2:length // 2 + length // 10] = order[:length // 10]
    (found,) = told(tmp_path, one(order, rng))
    assert (found.severity, found.where.module) == (Severity.MEDIUM, "shuffle.order")
    assert len(found.measured["missing"]) == min(20, length // 10)


@pytest.mark.parametrize("made", [
    lambda rng: rng.permutation(500),
    lambda rng: rng.integers(0, 500, 500),
    lambda rng: np.concatenate([p := rng.permutation(490), p[:10]]),
    lambda rng: np.rint(np.linspace(0, 499, 500) ** 1.02 / 499**0.02).astype(np.int64),
    lambda rng: np.sort(np.concatenate([rng.permutation(500)[:470], rng.integers(0, 500, 30)])),
    lambda rng: rng.permutation(520)[:500],
], ids=["whole", "drawn", "filled-up", "nearest", "sorted", "part"])
def test_healthy_orders_without_siblings(made: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    assert told(tmp_path, one(made(rng), rng)) == []
