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
