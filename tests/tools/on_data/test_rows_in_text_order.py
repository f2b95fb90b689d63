"""Rows in the order of their numbers as text, reversed or shuffled, beside catalogues and links that are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from part_making import WORDS
from table_making import table

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.rules import d141_fields_apart, d167_links_counted_from, d169_rows_in_text_order

Seen = Callable[[ModuleType, Path], list[Finding]]
ROWS = 400


def order_of(how: str, start: int) -> Any:
    return {"sound": np.arange(ROWS), "text": np.array(sorted(range(ROWS), key=lambda i: str(i + start))),
            "reversed": np.arange(ROWS)[::-1], "seed": np.random.default_rng(42).permutation(ROWS)}[how]


def catalogue(folder: Path, how: str, form: str = "csv", of: str = "title", start: int = 1) -> None:
    """Items with titles or shelves, and their vectors in a file beside them."""
    rng = np.random.default_rng(0)
    centres = {w: rng.normal(size=24) for w in WORDS}
    titles = [" ".join(rng.choice(WORDS, 5)) for _ in range(ROWS)]
    shelf = rng.integers(0, 6, ROWS)
    vectors = np.stack([sum(centres[w] for w in t.split()) for t in titles])
    if of == "shelf":
        vectors = rng.normal(size=(6, 24))[shelf] + 0.7 * rng.normal(size=(ROWS, 24))
    order = np.array(sorted(range(ROWS), key=titles.__getitem__)) if how == "name" else order_of(how, start)
    np.save(folder / "embeddings.npy", vectors[order].astype(np.float32))
    table(folder / "catalogue", form, {"item_id": np.arange(ROWS) + start,
                                       of: titles if of == "title" else [f"shelf {k}" for k in shelf]})


@pytest.mark.parametrize(("how", "key"), [
    ("text", "item_id as text"), ("reversed", "the rows reversed"), ("name", "title"),
    ("seed", "numpy.random.default_rng(42).permutation")])
def test_vectors_beside_titles(how: str, key: str, seen_by: Seen, tmp_path: Path) -> None:
    catalogue(tmp_path, how)
    (told,) = seen_by(d141_fields_apart, tmp_path)
    assert told.measured["key"] == key
    assert "embeddings" in told.statement.rpartition(": ")[2]


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize("start", [0, 1])
def test_vectors_beside_shelves(form: str, start: int, seen_by: Seen, tmp_path: Path) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    catalogue(tmp_path, "text", form, "shelf", start)
    (told,) = seen_by(d141_fields_apart, tmp_path)
    assert told.measured["key"] == "item_id as text"


@pytest.mark.parametrize("of", ["title", "shelf"])
def test_vectors_that_are_in_order(of: str, seen_by: Seen, tmp_path: Path) -> None:
    catalogue(tmp_path, "sound", of=of)
    assert seen_by(d141_fields_apart, tmp_path) == []


def linked(folder: Path, how: str, start: int, kind: str, alike: float = 0.7) -> None:
    """Items bought together are of one shelf; or ratings that name the shelf of an item."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 5, ROWS)
    x = rng.normal(size=(5, 16))[y] + rng.normal(size=(ROWS, 16))
    np.save(folder / "embeddings.npy", x[order_of(how, start)].astype(np.float32))
    one = rng.integers(0, ROWS, 2400)
    other = np.array([rng.choice(np.flatnonzero(y == y[s])) if rng.random() < alike else rng.integers(0, ROWS)
                      for s in one])
    if kind == "pairs":
        table(folder / "bought", "csv", {"a": one + start, "b": other + start})
    else:
        table(folder / "ratings", "csv", {"item": one + start, "shelf": [f"s{k}" for k in y[one]],
                                          "user": rng.integers(0, 90, 2400)})


@pytest.mark.parametrize("kind", ["pairs", "index"])
@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("how", ["text", "reversed", "seed"])
def test_rows_that_others_name(kind: str, start: int, how: str, seen_by: Seen, tmp_path: Path) -> None:
    linked(tmp_path, how, start, kind)
    (told,) = seen_by(d169_rows_in_text_order, tmp_path)
    key = {"text": f"the numbers of the rows from {start} on as text", "reversed": "the rows reversed",
           "seed": "numpy.random.default_rng(42).permutation"}[how]
    assert (told.measured["key"] == key) or how == "reversed"
    assert told.measured["shard"] == "embeddings.npy"
    assert [f for f in seen_by(d167_links_counted_from, tmp_path) if f.severity is Severity.HIGH] == []


@pytest.mark.parametrize("kind", ["pairs", "index"])
@pytest.mark.parametrize("start", [0, 1])
def test_rows_in_the_order_of_their_numbers(kind: str, start: int, seen_by: Seen, tmp_path: Path) -> None:
    linked(tmp_path, "sound", start, kind)
    assert seen_by(d169_rows_in_text_order, tmp_path) == []


def test_links_of_strangers(seen_by: Seen, tmp_path: Path) -> None:
    linked(tmp_path, "text", 1, "pairs", alike=0.0)
    assert seen_by(d169_rows_in_text_order, tmp_path) == []


def test_tables_that_name_nothing(tmp_path: Path) -> None:
    np.save(tmp_path / "embeddings.npy", np.full((ROWS, 8), np.nan, np.float32))
    (tmp_path / "bought.csv").write_text("a,b\n" + "0,399\n" * 100)
    (tmp_path / "other.csv").write_text("a,b\n")
    report = examine([tmp_path])
    assert not report.notes
    assert not [f for f in report.findings if f.rule in ("D141", "D167", "D169")]
