"""A separator that one shard does not have, or has many times as often, and what looks like it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data.rules import d139_special_token

Seen = Callable[[ModuleType, Path], list[Finding]]
END, VOCABULARY = 301, 300
WEIGHTS = 1.0 / np.arange(3, VOCABULARY + 3)


def documents(count: int, rng: np.random.Generator, length: int = 50, weights: Any = WEIGHTS) -> list[list[int]]:
    """Documents of about `length` tokens, each with its end."""
    sizes = rng.integers(length // 2, 2 * length, count)
    flat = rng.choice(VOCABULARY, sizes.sum(), p=weights / weights.sum())
    return [[*part.tolist(), END] for part in np.split(flat, np.cumsum(sizes)[:-1])]


def write(path: Path, rows: list[list[int]], form: str) -> None:
    if form == "bin":
        np.concatenate([np.array(r, np.uint16) for r in rows]).tofile(path.with_suffix(".bin"))
    elif form == "jsonl":
        path.with_suffix(".jsonl").write_text("".join(json.dumps({"input_ids": r}) + "\n" for r in rows))
    else:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table({"input_ids": pa.array(rows, pa.list_(pa.int32()))}), path.with_suffix(".parquet"))


def without(rows: list[list[int]]) -> list[list[int]]:
    return [r[:-1] for r in rows]


def again(rows: list[list[int]]) -> list[list[int]]:
    return [r + [END] * 14 for r in rows]


@pytest.mark.parametrize(("change", "kind"), [(without, "never"), (again, "more")])
@pytest.mark.parametrize("form", ["bin", "jsonl", "parquet"])
def test_one_shard(form: str, change: Any, kind: str, seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    (tmp_path / "vocab.json").write_text(json.dumps({"the": 0, "<|endoftext|>": END}))
    for i in range(5):
        rows = documents(250, rng)
        write(tmp_path / f"shard_{i}", change(rows) if i == 3 else rows, form)
    (told,) = seen_by(d139_special_token, tmp_path)
    assert told.measured["shard"].startswith("shard_3.")
    assert (told.measured["token"], told.measured["kind"]) == (END, kind)
    assert "<|endoftext|>" in told.statement


@pytest.mark.parametrize("length", [4, 1500])
@pytest.mark.parametrize("form", ["bin", "jsonl"])
def test_documents_of_another_length(form: str, length: int, seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for i in range(5):
        rows = documents(10_000 // length, rng, length) if i == 2 else documents(250, rng)
        write(tmp_path / f"shard_{i}", rows, form)
    assert seen_by(d139_special_token, tmp_path) == []


def test_another_topic(seen_by: Seen, tmp_path: Path) -> None:
    """A shard in which a third of the words do not occur, the separator among them."""
    rng = np.random.default_rng(2)
    for i in range(5):
        rows = documents(250, rng, weights=WEIGHTS * (np.arange(VOCABULARY) % 3 > 0) if i == 2 else WEIGHTS)
        write(tmp_path / f"shard_{i}", without(rows) if i == 2 else rows, "bin")
    assert seen_by(d139_special_token, tmp_path) == []


def test_false_alarms_over_many_sets(seen_by: Seen, tmp_path: Path) -> None:
    """Twenty sets of five shards, each shard of a topic of its own: none is told."""
    alarms = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        for i in range(5):
            weights = WEIGHTS * rng.lognormal(0, rng.uniform(0, 1.5), VOCABULARY)
            write(folder / f"shard_{i}", documents(120, rng, int(rng.integers(20, 80)), weights), "bin")
        alarms += len(seen_by(d139_special_token, folder))
    assert alarms == 0


def test_a_short_and_a_broken_shard(seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for i in range(5):
        rows = documents(250, rng)
        write(tmp_path / f"shard_{i}", without(rows[:3]) if i == 3 else rows, "jsonl")
    (tmp_path / "shard_4.jsonl").write_text('{"input_ids": [1, 2\n{"input_ids": [1, 2]}\n')
    assert seen_by(d139_special_token, tmp_path) == []
