"""Durations with timeouts, and fields that are nearly always zero: design, and no slip."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from traindx_tools.finding import Severity
from traindx_tools.on_data import examine

ROWS = 3_000


def _latency() -> np.ndarray:
    return np.random.default_rng(0).exponential(20.0, ROWS)


def _told(path: Path, rule: str, **fields: np.ndarray) -> list[Severity]:
    rows = zip(*(v.tolist() for v in fields.values()), strict=True)
    path.write_text("\n".join([",".join(fields), *(",".join(map(str, r)) for r in rows)]) + "\n")
    return [f.severity for f in examine([path]).findings if f.rule == rule]


def test_timeouts_are_a_remark(tmp_path: Path) -> None:
    draw, latency = np.random.default_rng(1), _latency()
    latency[draw.choice(ROWS, 29, replace=False)] = draw.uniform(30_000, 60_000, 29)
    assert _told(tmp_path / "train.csv", "D102", latency_ms=latency) in ([], [Severity.INFO])


def test_rows_of_another_unit_are_still_told(tmp_path: Path) -> None:
    latency = np.exp(np.random.default_rng(2).normal(3.0, 0.5, ROWS))
    latency[::150] *= 1_000_000
    assert Severity.HIGH in _told(tmp_path / "train.csv", "D102", latency_ms=latency)


def test_a_single_overflow_is_still_told(tmp_path: Path) -> None:
    latency = _latency()
    latency[77] = 4e9
    assert _told(tmp_path / "train.csv", "D102", latency_ms=latency) == [Severity.HIGH]


def test_a_label_that_is_nearly_always_zero_has_no_period(tmp_path: Path) -> None:
    label = (np.random.default_rng(3).random(ROWS) < 0.006).astype(int)
    assert _told(tmp_path / "train.csv", "D117", x=_latency(), label=label) == []


def test_a_round_robin_is_still_told(tmp_path: Path) -> None:
    assert _told(tmp_path / "train.csv", "D117", x=_latency(), label=np.arange(ROWS) % 3) == [Severity.INFO]
