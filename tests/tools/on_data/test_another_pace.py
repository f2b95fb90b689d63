"""D202: series of one file, or of one device, that were sampled at another rate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d202_another_pace as d202

Seen = Callable[[ModuleType, Path], list[Finding]]
Array = np.ndarray[Any, Any]


def series(seed: int, pace: float = 1.0, rows: int = 80, places: int = 200, beats: tuple[float, ...] = (2, 5, 11)
           ) -> Array:
    """Rows of 4 s: beats of some frequencies over a hum and noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(places) * 4 / places * pace
    beat = rng.choice(beats, rows) + rng.normal(0, 0.3, rows)
    x = np.sin(2 * np.pi * beat[:, None] * t + rng.uniform(0, 6, (rows, 1)))
    x += 0.4 * np.sin(2 * np.pi * 1.1 * t + rng.uniform(0, 6, (rows, 1)))
    return np.asarray(x + 0.15 * rng.normal(size=x.shape), np.float32)


def saved(folder: Path, parts: list[Array], **beside: list[Any]) -> None:
    for k, part in enumerate(parts):
        np.savez(folder / f"rank{k}.npz", x=part, y=np.arange(len(part)) % 4, **{n: v[k] for n, v in beside.items()})


@pytest.mark.parametrize("pace", [2.0, 0.5, 1.5])
@pytest.mark.parametrize("channels", [0, 2])
def test_one_file(channels: int, pace: float, tmp_path: Path, seen_by: Seen) -> None:
    parts = [series(k, pace if k == 1 else 1.0) for k in range(5)]
    saved(tmp_path, [np.stack([p, p[:, ::-1]][:channels], axis=2) if channels else p for p in parts])
    (told,) = seen_by(d202, tmp_path)
    assert (told.severity, told.measured["shard"]) == (Severity.HIGH, "rank1.npz")
    assert told.measured["ratio"] == pytest.approx(pace, rel=0.1)


def test_one_device(tmp_path: Path, seen_by: Seen) -> None:
    device = np.arange(400) % 5
    x = np.concatenate([series(k, 2.0 if k == 3 else 1.0, places=200) for k in range(5)])
    order = np.argsort(np.argsort(device, kind="stable"))
    np.savez(tmp_path / "all.npz", x=x[order], y=np.arange(400) % 3, device=device)
    (told,) = seen_by(d202, tmp_path)
    assert (told.severity, told.measured["part"]) == (Severity.MEDIUM, "3")


@pytest.mark.parametrize("design", ["sound", "other beats", "each its own", "noise", "filtered", "few rows"])
def test_other_sources(design: str, tmp_path: Path, seen_by: Seen) -> None:
    parts = [series(k) for k in range(5)]
    rng = np.random.default_rng(3)
    if design == "other beats":
        parts[2] = series(2, beats=(3.5, 8))
    if design == "each its own":
        parts = [series(k, 1 + 0.3 * k) for k in range(5)]
    if design == "noise":
        parts = [np.cumsum(rng.normal(size=(80, 200)), axis=1) for _ in range(5)]
    if design == "filtered":
        parts[2] = np.apply_along_axis(lambda r: np.convolve(r, np.ones(9) / 9, "same"), 1, parts[2])
    if design == "few rows":
        parts = [p[:10] for p in [series(0, 2.0), *parts]]
    saved(tmp_path, [p.astype(np.float32) for p in parts])
    assert not seen_by(d202, tmp_path)


def test_declared_rate(tmp_path: Path, seen_by: Seen) -> None:
    saved(tmp_path, [series(k, 2.0 if k == 1 else 1.0) for k in range(5)],
          rate=[np.full(80, 25 if k == 1 else 50) for k in range(5)])
    assert {f.severity for f in seen_by(d202, tmp_path)} == {Severity.INFO}


def test_series_that_hold_nothing(tmp_path: Path, seen_by: Seen) -> None:
    saved(tmp_path, [np.zeros((80, 200)), np.full((80, 200), np.nan), np.full((80, 200), np.inf), np.ones((80, 200))])
    assert not seen_by(d202, tmp_path)
