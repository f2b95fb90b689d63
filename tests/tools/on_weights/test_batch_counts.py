"""Layers of normalisation that counted far fewer batches than those around them, and orders that are no copies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import of_run

torch = pytest.importorskip("torch")


def told(folder: Path, tensors: dict[str, Any]) -> list[Finding]:
    torch.save({n: torch.tensor(t) for n, t in tensors.items()}, folder / "model.pt")
    return [f for f in of_run([str(folder / "model.pt")]).findings if f.severity is not Severity.INFO]


def network(counts: Sequence[int], anew: Sequence[int] = ()) -> dict[str, Any]:
    """Convolutions and norms; `anew`: layers whose statistics are still near where they begin."""
    rng = np.random.default_rng(3)
    made: dict[str, Any] = {}
    for i, count in enumerate(counts):
        made[f"c{i}.weight"] = (0.1 * rng.standard_t(8, size=(24, 24, 3, 3))).astype(np.float32)
        mean, var = 0.5 * rng.normal(size=24), rng.gamma(4, 0.2, 24)
        left = 0.9**count if i in anew else 0.0
        for name, value in (("weight", 1 + 0.2 * rng.normal(size=24)), ("bias", 0.2 * rng.normal(size=24)),
                            ("running_mean", (1 - left) * mean), ("running_var", left + (1 - left) * var)):
            made[f"c{i}.bn.{name}"] = value.astype(np.float32)
        made[f"c{i}.bn.num_batches_tracked"] = np.int64(count)
    return made


def test_statistics_that_were_begun_anew(tmp_path: Path) -> None:
    (found,) = told(tmp_path, network([900] * 3 + [4] + [900] * 2, anew=[3]))
    assert found.rule == "W108"
    assert found.severity is Severity.HIGH
    assert found.measured["name"] == "c3.bn"


def test_a_count_that_was_set_back_alone(tmp_path: Path) -> None:
    (found,) = told(tmp_path, network([80] * 3 + [3] + [80] * 2))
    assert found.severity is Severity.LOW
    assert "the count alone" in found.statement


@pytest.mark.parametrize("counts", [
    [80] * 6,
    [80, 80, 160, 80, 80, 80],  # used twice a step
    [80] * 5 + [3],  # a new head
    [5, 5, 80, 80, 80, 80],  # frozen first layers
    [80, 20, 40, 3, 160, 7],
    [0, 0, 0, 0, 0, 0],
])
def test_counts_that_may_differ(counts: list[int], tmp_path: Path) -> None:
    assert not [f for f in told(tmp_path, network(counts)) if f.measured["kind"] == "few-batches"]


@pytest.mark.parametrize("twice", [True, False])
def test_orders_of_flows_are_no_copies(twice: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    made = {f"flow.{i}.perm": rng.permutation(24) for i in range(5)}
    if twice:
        made["flow.2.perm"][5] = made["flow.2.perm"][9]
    assert [f.rule for f in told(tmp_path, made)] == (["W164"] if twice else [])


def test_broken(tmp_path: Path) -> None:
    made = network([80] * 6)
    made["c3.bn.num_batches_tracked"] = np.zeros(0, np.int64)
    made["c2.bn.running_var"] = np.full(24, np.nan, np.float32)
    assert not [f for f in told(tmp_path, made) if f.measured["kind"] == "few-batches"]


def test_layer_numbers_that_begin_elsewhere(tmp_path: Path) -> None:
    """All names are counted with the numbers raised, and the place is one that they move."""
    from traindx_tools.on_weights import examine

    rng = np.random.default_rng(8)
    for start, name in ((0, "a.pt"), (1, "b.pt")):
        made = {"embed.weight": torch.tensor(rng.normal(size=(40, 8)))}
        made |= {f"layers.{i + start}.fc.weight": torch.tensor(rng.normal(size=(8, 8))) for i in range(5)}
        torch.save(made, tmp_path / name)
    (found,) = [f for f in examine(tmp_path / "a.pt", against=tmp_path / "b.pt").findings if f.rule == "W110"]
    assert "6 in all with layer numbers raised by 1" in found.statement
    assert found.where.module == "layers.0.fc.weight"
