"""Numbers that state how long the data of a row are, beside where these end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from data_making import mds_shard

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d189_stated_length as d189

Array = np.ndarray[Any, Any]
Seen = Callable[[ModuleType, Path], list[Finding]]
State = Callable[[int, Array], Array]


def clips(folder: Path, state: State, parts: int = 5, fill: float = 0.0, rows: int = 120, **more: Array) -> None:
    """Spectra of up to 96 frames, the rest filled, with a stated number of each."""
    rng = np.random.default_rng(0)
    for part in range(parts):
        frames = rng.integers(20, 96, rows)
        x = rng.normal(size=(rows, 96, 6)).astype(np.float32)
        x[np.arange(96)[None, :] >= frames[:, None]] = fill
        np.savez(folder / f"clips_{part}.npz", x=x, n=state(part, frames), y=rng.integers(0, 4, rows),
                 **{k: np.full(rows, v[part]) for k, v in more.items()})


@pytest.mark.parametrize(("state", "kind", "own"), [
    (lambda p, f: f * 2 if p == 3 else f, "factor", 2.0),
    (lambda p, f: f * 160 if p != 3 else f, "factor", 1.0),
    (lambda p, f: f * (0.02 if p == 3 else 0.01), "factor", 0.02),
    (lambda p, f: f * 160 + np.arange(len(f)) % 160 if p != 3 else f * 320, "factor", 320.0),
    (lambda p, f: f + 2 if p == 3 else f, "offset", 2),
    (lambda p, f: f if p == 3 else f - 1, "offset", 0),
])
def test_another_factor_or_offset_in_one_file(state: State, kind: str, own: float, tmp_path: Path, seen_by: Seen
                                              ) -> None:
    clips(tmp_path, state)
    (one,) = seen_by(d189, tmp_path)
    assert one.severity is Severity.HIGH
    assert (one.measured["field"], one.measured["beside"], one.measured["part"]) == ("n", "x", "clips_3.npz")
    assert one.measured["kind"] == kind
    assert one.measured["offset" if kind == "offset" else "own"] == pytest.approx(own, rel=0.02)


def test_tokens_of_lists_and_their_stated_number(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(1)
    for part in range(4):
        lengths = rng.integers(10, 80, 100)
        lines = [json.dumps({"ids": rng.integers(1, 900, n).tolist(), "num_tokens": int(n) + 2 * (part == 1)})
                 for n in lengths]
        (folder := tmp_path / f"part{part}.jsonl").write_text("\n".join(lines) + "\n")
        assert folder.exists()
    (found,) = seen_by(d189, tmp_path)
    assert (found.measured["field"], found.measured["offset"]) == ("num_tokens", 2)


def test_bytes_of_serialised_fields(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(2)
    for part in range(4):
        rows = []
        for n in rng.integers(10, 80, 100):
            ids = rng.integers(1, 900, n).astype("<i4" if part != 2 else "<i2")
            rows.append([ids.tobytes(), int(n).to_bytes(8, "little")])
        (tmp_path / f"shard_{part}.mds").write_bytes(mds_shard([("ids", "bytes", None), ("n", "int", 8)], rows))
    (found,) = seen_by(d189, tmp_path)
    assert found.measured["part"] == "shard_2.mds"
    assert found.measured["own"] == pytest.approx(0.5)


@pytest.mark.parametrize("state", [
    lambda p, f: f, lambda p, f: f * 160, lambda p, f: f * (p + 1), lambda p, f: np.full(len(f), 96),
    lambda p, f: np.random.default_rng(p).integers(20, 96, len(f)),
    lambda p, f: np.random.default_rng(p).integers(20, 96, len(f)) if p == 3 else f,
    lambda p, f: np.where(np.arange(len(f)) % 3 == 0, f * 2, f) if p == 3 else f,
    lambda p, f: f * 0,
])
def test_one_relation_or_none_is_quiet(state: State, tmp_path: Path, seen_by: Seen) -> None:
    clips(tmp_path, state)
    assert seen_by(d189, tmp_path) == []


def test_a_field_that_says_the_rate_makes_it_a_remark(tmp_path: Path, seen_by: Seen) -> None:
    clips(tmp_path, lambda p, f: f * 2 if p == 3 else f, rate=np.array([16000, 16000, 16000, 32000, 16000]))
    (found,) = seen_by(d189, tmp_path)
    assert found.severity is Severity.INFO


def test_rows_that_were_cut_at_the_width_are_quiet(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(3)
    for part in range(4):
        real = rng.integers(10, 60, 200) * (3 if part == 2 else 1)
        x = rng.integers(1, 900, (200, 64))
        x[np.arange(64)[None, :] >= real[:, None]] = 0
        np.savez(tmp_path / f"part_{part}.npz", ids=x, n=real)
    assert seen_by(d189, tmp_path) == []


@pytest.mark.parametrize("fill", [np.nan, -100.0])
def test_other_fillers_are_read(fill: float, tmp_path: Path, seen_by: Seen) -> None:
    clips(tmp_path, lambda p, f: f * 2 if p == 3 else f, fill=fill)
    assert len(seen_by(d189, tmp_path)) == (0 if np.isnan(fill) else 1)


def test_few_rows_and_missing_fields_are_read(tmp_path: Path, seen_by: Seen) -> None:
    clips(tmp_path, lambda p, f: f * 2 if p == 3 else f, rows=10)
    np.savez(tmp_path / "clips_9.npz", x=np.zeros((10, 96, 6)), y=np.zeros(10))
    assert seen_by(d189, tmp_path) == []
