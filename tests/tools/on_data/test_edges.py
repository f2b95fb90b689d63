"""Held-out pairs that are edges of the graph in another file (D116)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data.rules import d116_reversed_pairs as d116

Seen = Callable[[ModuleType, Path], list[Finding]]


def write(folder: Path, *, kept: float, across: bool = True, way: str = "both", more: Any = None) -> Any:
    """A bus network of 600 stops: `kept`, the share of the held-out links that were left in the graph."""
    rng = np.random.default_rng(1)
    every = np.unique(np.sort(rng.integers(0, 600, (5000, 2)), axis=1), axis=0)
    every = rng.permutation(every[every[:, 0] != every[:, 1]])
    held, train = every[:700], every[700:]
    left = np.concatenate([train, held[: int(kept * len(held))]])
    edges = np.concatenate([left, left[:, ::-1]]) if way == "both" else left[:, ::-1]
    arrays = {"stops": rng.normal(size=(600, 6)).astype(np.float32), "links": edges.T if across else edges}
    np.savez(folder / "network.npz", **arrays, **(more(train) if more else {}))
    np.save(folder / "links_train.npy", train)
    np.save(folder / "links_test.npy", held)
    return held


@pytest.mark.parametrize("across", [True, False])
@pytest.mark.parametrize("way", ["both", "back"])
def test_held_out_links_that_were_left_in_the_graph(across: bool, way: str, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, kept=1.0, across=across, way=way)
    (found,) = [f for f in seen_by(d116, tmp_path) if f.measured["kind"] == "in-graph"]
    assert found.measured["shard"] == "links_test.npy"
    assert "are edges in links of network.npz" in found.statement
    assert ("in both directions" in found.statement) is (way == "both")


@pytest.mark.parametrize("how", [
    {"kept": 0.0},
    {"kept": 0.6},  # links of a later year: many were there before
    {"kept": 1.0, "more": lambda train: {"links_of_training": train.T}},  # two graphs, of which one has none of them
])
def test_graphs_without_them_and_later_links_are_quiet(how: dict[str, Any], tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, **how)
    assert not [f for f in seen_by(d116, tmp_path) if f.measured["kind"] == "in-graph"]


def test_links_with_a_weight_are_edges_by_design(tmp_path: Path, seen_by: Seen) -> None:
    held = write(tmp_path, kept=1.0)
    (tmp_path / "links_test.npy").unlink()
    (tmp_path / "links_train.npy").unlink()
    for name, pairs in (("train", held[:400]), ("test", held[400:])):
        np.savez(tmp_path / f"{name}.npz", pairs=pairs, minutes=pairs.sum(axis=1) / 7.0)
    assert not [f for f in seen_by(d116, tmp_path) if f.measured["kind"] == "in-graph"]


def test_a_graph_that_is_cut_off_and_no_whole_numbers_are_read(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, kept=1.0)
    path = tmp_path / "network.npz"
    path.write_bytes(path.read_bytes()[:4000])
    assert not [f for f in seen_by(d116, tmp_path) if f.rule == "D116"]
