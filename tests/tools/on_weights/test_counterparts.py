"""Of two files each part is compared with the part of its name: weights with weights, an average with the average."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weight_planting as planted

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import examine
from traindx_tools.on_weights.formats.reading import read_checkpoint

torch = pytest.importorskip("torch")
Arrays = dict[str, Any]


def _moved(arrays: Arrays, by: float, seed: int, still: str = "") -> Arrays:
    rng = np.random.default_rng(seed)
    return {n: v if still and still in n else (v + by * np.std(v) * rng.standard_normal(v.shape)).astype(v.dtype)
            for n, v in arrays.items()}


def _saved(folder: Path, name: str, weights: Arrays, average: Arrays) -> Path:
    """The average first, as trees that are sorted by name have it."""
    both = {"ema_params": average, "params": weights}
    torch.save({k: {n: torch.tensor(v) for n, v in own.items()} for k, own in both.items()}, folder / f"{name}.pt")
    return folder / f"{name}.pt"


def _told(folder: Path, still: str = "", still_average: str = "") -> list[Finding]:
    weights = planted.stack()
    average = _moved(weights, 0.02, 3)
    before = _saved(folder, "step_100", weights, average)
    after = _saved(folder, "step_200", _moved(weights, 0.1, 1, still), _moved(average, 0.05, 2, still_average))
    report = examine(after, before)
    assert not report.notes
    return [f for f in report.findings if f.severity is not Severity.INFO]


def test_the_weights_are_not_their_average(tmp_path: Path) -> None:
    weights = planted.stack()
    assert read_checkpoint(_saved(tmp_path, "m", weights, _moved(weights, 0.02, 3))).weights.key == "params"


def test_all_moved(tmp_path: Path) -> None:
    assert _told(tmp_path) == []


def test_a_block_of_the_weights_stood_still(tmp_path: Path) -> None:
    told = _told(tmp_path, still="h.3.")
    assert told
    assert {f.rule for f in told} <= {"W112", "W118", "W136"}


def test_a_block_of_the_average_stood_still(tmp_path: Path) -> None:
    told = _told(tmp_path, still_average="h.3.")
    assert told
    assert {f.rule for f in told} <= {"W112", "W118", "W122", "W136"}
    assert all(str(f.where.module).startswith("ema_params") for f in told)


@pytest.mark.parametrize("scale", [float("inf"), float("nan")])
def test_counts_that_are_no_numbers(scale: float, tmp_path: Path) -> None:
    torch.save({"model": {n: torch.tensor(v) for n, v in planted.stack().items()}, "step": scale, "epoch": scale,
                "scaler": {"scale": scale, "_growth_tracker": scale}}, tmp_path / "m.pt")
    assert not [n for n in examine(tmp_path / "m.pt").notes if "failed" in n]
