"""Links to rows of another table that are counted from another number, and links that only look so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from table_making import table

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d167_links_counted_from

Seen = Callable[[ModuleType, Path], list[Finding]]
NODES, LINKS = 300, 2400


def graph(seed: int, alike: float = 0.7) -> tuple[np.random.Generator, Any, Any, Any, Any]:
    """Nodes of five classes with features, and links of which seven in ten join nodes of one class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 5, NODES)
    x = rng.normal(size=(5, 16))[y] + rng.normal(size=(NODES, 16))
    src = rng.integers(0, NODES, LINKS)
    dst = np.array([rng.choice(np.flatnonzero(y == y[s])) if rng.random() < alike else rng.integers(0, NODES)
                    for s in src])
    return rng, x.astype(np.float32), y, src, dst


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("sources", [2, 4])
def test_citations_merged_of_several_sources(form: str, sources: int, seen_by: Seen, tmp_path: Path) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    rng, x, y, src, dst = graph(0)
    source = rng.integers(0, sources, LINKS)
    odd = source == 1
    table(tmp_path / "cites", form, {"src": src + odd, "dst": dst + odd, "origin": [f"o{k}" for k in source]})
    table(tmp_path / "papers", form, {**{f"f{i}": x[:, i].round(3) for i in range(8)}, "field": y})
    (told,) = seen_by(d167_links_counted_from, tmp_path)
    assert (told.measured["shift"], told.measured["highest"], told.measured["rows_named"]) == (-1, NODES, NODES)
    assert "origin 'o1'" in told.statement
    assert told.severity is Severity.HIGH


@pytest.mark.parametrize("lies", [0, 1])
def test_molecules_in_one_file(lies: int, seen_by: Seen, tmp_path: Path) -> None:
    rng, x, y, src, dst = graph(1)
    kind = rng.integers(0, 3, LINKS)
    pairs = np.stack([src, dst], axis=lies) + np.expand_dims(kind == 2, lies)
    np.savez(tmp_path / "graph.npz", x=x, y=y, edge_index=pairs, edge_type=kind)
    (told,) = seen_by(d167_links_counted_from, tmp_path)
    assert "edge_index[0] and edge_index[1] of edge_type 2" in told.statement


def test_one_of_two_files(seen_by: Seen, tmp_path: Path) -> None:
    _, x, y, src, dst = graph(2)
    np.save(tmp_path / "features.npy", x)
    np.save(tmp_path / "labels.npy", y)
    for i, part in enumerate(np.split(np.stack([src, dst], axis=1), 2)):
        table(tmp_path / f"edges_{'ab'[i]}", "csv", {"u": part[:, 0] + i, "v": part[:, 1] + i})
    (told,) = seen_by(d167_links_counted_from, tmp_path)
    assert told.measured["shard"] == "edges_b.csv"


def test_the_second_half_of_a_list(seen_by: Seen, tmp_path: Path) -> None:
    _, x, y, src, dst = graph(3)
    later = np.arange(LINKS) >= 1500
    table(tmp_path / "edges", "csv", {"u": src + later, "v": dst + later})
    table(tmp_path / "nodes", "csv", {**{f"f{i}": x[:, i].round(3) for i in range(8)}, "kind": y})
    (told,) = seen_by(d167_links_counted_from, tmp_path)
    start = int(told.statement.split("rows ")[1].split("..")[0])
    assert abs(start - 1500) < 30


@pytest.mark.parametrize("form", ["csv", "hdf5"])
def test_an_index_of_items(form: str, seen_by: Seen, tmp_path: Path) -> None:
    if form == "hdf5":
        pytest.importorskip("h5py")
    rng, x, y, _, _ = graph(4)
    np.save(tmp_path / "embeddings.npy", x)
    item, shop = rng.integers(0, NODES, LINKS), rng.integers(0, 2, LINKS)
    table(tmp_path / "orders", form, {"item": item + (shop == 1), "shop": shop, "kind": y[item]})
    (told,) = seen_by(d167_links_counted_from, tmp_path)
    assert "shop 1" in told.statement
    assert "kind is told by the row that it names only after 1 is taken away" in told.statement


def test_a_list_that_counts_from_one_throughout(seen_by: Seen, tmp_path: Path) -> None:
    _, x, y, src, dst = graph(5)
    np.savez(tmp_path / "graph.npz", x=x, y=y, edge_index=np.stack([src, dst]) + 1)
    (told,) = seen_by(d167_links_counted_from, tmp_path)
    assert (told.severity, told.measured["kind"]) == (Severity.LOW, "all")


def test_ids_that_begin_with_one_and_links_with_zero(seen_by: Seen, tmp_path: Path) -> None:
    rng, x, _, src, dst = graph(6)
    source = rng.integers(0, 3, LINKS)
    less = source == 2
    order = rng.permutation(NODES)
    table(tmp_path / "nodes", "csv", {"node_id": order + 1, **{f"f{i}": x[order, i].round(3) for i in range(8)}})
    table(tmp_path / "edges", "csv", {"u": src + 1 - less, "v": dst + 1 - less, "source": [f"s{k}" for k in source]})
    (told,) = seen_by(d167_links_counted_from, tmp_path)
    assert (told.measured["shift"], told.measured["part"]) == (1, "the rows of source 's2'")


def sound(folder: Path) -> None:
    rng, x, y, src, dst = graph(7)
    table(folder / "edges", "csv", {"u": src, "v": dst, "source": [f"s{k}" for k in rng.integers(0, 3, LINKS)]})
    np.savez(folder / "nodes.npz", x=x, y=y)


def links_of_strangers(folder: Path) -> None:
    """Links that join no like nodes, and of one source none of the first node."""
    rng, x, y, src, dst = graph(8, alike=0.0)
    source = rng.integers(0, 3, LINKS)
    src, dst = (np.where((source == 1) & (v == 0), 1, v) for v in (src, dst))
    table(folder / "edges", "csv", {"u": src, "v": dst, "source": [f"s{k}" for k in source]})
    np.savez(folder / "nodes.npz", x=x, y=y)


def nodes_in_an_order(folder: Path) -> None:
    """Places along a road: the next place is as alike as the own one."""
    rng = np.random.default_rng(9)
    along = np.linspace(0, 20, NODES)
    x = np.stack([np.sin(along), np.cos(along), along], axis=1) + rng.normal(0, 0.02, (NODES, 3))
    src = rng.integers(1, NODES - 4, LINKS)
    source = rng.integers(0, 3, LINKS)
    table(folder / "edges", "csv", {"u": src, "v": src + rng.integers(0, 4, LINKS),
                                    "source": [f"s{k}" for k in source]})
    np.savez(folder / "nodes.npz", x=x)


def ids_of_their_own(folder: Path) -> None:
    """Links count from one, and so do the numbers of the nodes."""
    _, x, y, src, dst = graph(10)
    table(folder / "edges", "csv", {"u": src + 1, "v": dst + 1})
    table(folder / "nodes", "csv", {"node_id": np.arange(NODES) + 1, "y": y,
                                    **{f"f{i}": x[:, i].round(3) for i in range(8)}})


def counts_of_things(folder: Path) -> None:
    """Whole numbers as large as there are rows in another table, and no links."""
    rng = np.random.default_rng(11)
    table(folder / "visits", "csv", {"pages": rng.integers(1, 301, LINKS), "seconds": rng.integers(1, 301, LINKS),
                                     "kind": rng.integers(0, 4, LINKS)})
    np.savez(folder / "other.npz", x=rng.normal(size=(NODES, 8)), y=rng.integers(0, 4, NODES))


def nothing_to_link(folder: Path) -> None:
    np.savez(folder / "a.npz", x=np.full((NODES, 4), np.nan), edge_index=np.zeros((2, 100), np.int64))
    np.savez(folder / "b.npz", u=np.zeros(100, np.int64), v=np.zeros(100, np.int64))
    (folder / "c.csv").write_text("u,v\n")


@pytest.mark.parametrize("make", [sound, links_of_strangers, nodes_in_an_order, ids_of_their_own, counts_of_things,
                                  nothing_to_link])
def test_links_that_only_look_so(make: Any, seen_by: Seen, tmp_path: Path) -> None:
    make(tmp_path)
    assert seen_by(d167_links_counted_from, tmp_path) == []
