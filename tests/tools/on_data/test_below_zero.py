"""D201: counts that went below zero in a type without a sign."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d201_below_zero as d201

Seen = Callable[[ModuleType, Path], list[Finding]]
Array = np.ndarray[Any, Any]


def counts(seed: int, rows: int = 200) -> Array:
    """Counts less a background, some below zero."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.poisson(40, (rows, 24)) - 40 + 300 * (rng.random((rows, 24)) < 0.1), np.int64)


def saved(folder: Path, form: str, parts: list[Array]) -> None:
    for k, part in enumerate(parts):
        if form == "npz":
            np.savez(folder / f"part{k}.npz", counts=part, label=np.arange(len(part)) % 3)
        elif form == "jsonl":
            (folder / f"part{k}.jsonl").write_text("\n".join(
                json.dumps({"counts": r[: 5 + i % 9].tolist()}) for i, r in enumerate(part)))
        else:
            (folder / f"part{k}.csv").write_text("\n".join(["a,b", *(f"{r[0]},{r[1]}" for r in part)]))


@pytest.mark.parametrize(("bits", "dtype"), [(16, np.uint16), (32, np.uint32), (64, np.uint64), (16, np.float32)])
def test_one_file(bits: int, dtype: Any, tmp_path: Path, seen_by: Seen) -> None:
    parts = [np.maximum(counts(k), 0).astype(dtype) for k in range(4)]
    parts[2] = counts(2).astype(np.uint64).astype(f"u{bits // 8}").astype(dtype)
    saved(tmp_path, "npz", parts)
    (told,) = seen_by(d201, tmp_path)
    assert (told.severity, told.measured["bits"], told.measured["shard"]) == (Severity.HIGH, bits, "part2.npz")
    assert told.measured["lowest"] == int(counts(2).min())


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_all_files_and_other_forms(form: str, tmp_path: Path, seen_by: Seen) -> None:
    saved(tmp_path, form, [counts(k, 400).astype(np.uint16).astype(np.int64) for k in range(3)])
    assert {f.measured["shard"] for f in seen_by(d201, tmp_path)} == {f"part{k}.{form}" for k in range(3)}


def test_eight_bits_of_one_file(tmp_path: Path, seen_by: Seen) -> None:
    small = [np.clip(counts(k) // 4, 0, 60).astype(np.uint8) for k in range(4)]
    small[1] = (np.clip(counts(1) // 4, -9, 60)).astype(np.int8).view(np.uint8)
    saved(tmp_path, "npz", small)
    (told,) = seen_by(d201, tmp_path)
    assert (told.measured["bits"], told.measured["shard"]) == (8, "part1.npz")


@pytest.mark.parametrize("design", ["mark", "limit", "hashes", "pictures", "heavy", "signed", "ids"])
def test_large_numbers_that_are_meant(design: str, tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(7)
    sound = np.maximum(counts(0), 0)
    made = {
        "mark": np.where(rng.random(sound.shape) < 0.1, 65535, sound),
        "limit": np.where(sound > 250, 65535, sound * 200).clip(0, 65535),
        "hashes": rng.integers(0, 2**32, sound.shape),
        "pictures": np.where(rng.random(sound.shape) < 0.5, rng.integers(0, 20, sound.shape),
                             rng.integers(236, 256, sound.shape)),
        "heavy": np.minimum(np.exp(rng.normal(3, 3, sound.shape)), 65535).astype(np.int64),
        "signed": counts(0),
        "ids": 60000 + rng.integers(0, 5000, sound.shape),
    }[design]
    saved(tmp_path, "npz", [made, made[::-1].copy(), np.roll(made, 3)])
    assert not seen_by(d201, tmp_path)


def test_empty_and_odd_values(tmp_path: Path, seen_by: Seen) -> None:
    np.savez(tmp_path / "a.npz", x=np.full((40, 4), np.nan), y=np.full(40, np.inf), z=np.zeros((40, 0)))
    assert not seen_by(d201, tmp_path)
