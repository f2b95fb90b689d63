"""W173: an average of the weights that began at zero and was not corrected for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from weight_planting import write_npz, write_safetensors

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights import of_run

Arrays = dict[str, Any]
UPDATES = 300


def told(*files: Path) -> list[Finding]:
    return [f for f in of_run([str(f) for f in files]).findings if f.rule == "W173"]


def course(grow: float = 1.0, blocks: int = 5, width: int = 16) -> list[Arrays]:
    """The weights of a training at each update: scales stay near one, matrices grow by `grow` and turn."""
    rng = np.random.default_rng(0)
    begun: Arrays = {}
    for i in range(blocks):
        up, down = rng.standard_normal((2, width, width))
        begun |= {f"blocks.{i}.norm.weight": np.ones(width), f"blocks.{i}.up.weight": up,
                  f"blocks.{i}.up.bias": rng.standard_normal(width), f"blocks.{i}.down.weight": down}
    drift = {n: rng.standard_normal(v.shape) for n, v in begun.items()}
    size = {n: 0.02 if "norm" in n else grow * (0.1 if "up" in n else 1.0) for n in begun}
    return [{n: (v + size[n] * drift[n] * (1 - np.exp(-3 * t / UPDATES))).astype(np.float32) for n, v in begun.items()}
            for t in range(1, UPDATES + 1)]


def averaged(steps: list[Arrays], decay: float, zero: bool, corrected: bool = False) -> Arrays:
    average = {n: 0 * v if zero else v.astype(np.float64) for n, v in steps[0].items()}
    for weights in steps if zero else steps[1:]:
        average = {n: decay * a + (1 - decay) * weights[n] for n, a in average.items()}
    by = 1 - decay**len(steps) if corrected else 1.0
    return {n: (a / by).astype(np.float32) for n, a in average.items()}


def checkpoint(path: Path, weights: Arrays, average: Arrays, **values: Any) -> Path:
    torch = pytest.importorskip("torch")
    torch.save({"model": {n: torch.from_numpy(v) for n, v in weights.items()},
                "ema": {n: torch.from_numpy(v) for n, v in average.items()}, **values}, path)
    return path


@pytest.mark.parametrize("grow", [0.2, 1.0])
@pytest.mark.parametrize("decay", [0.99, 0.995, 0.999])
def test_an_average_in_the_checkpoint(grow: float, decay: float, tmp_path: Path) -> None:
    steps = course(grow)
    average = averaged(steps, decay, zero=True)
    found = told(checkpoint(tmp_path / "c.pt", steps[-1], average, step=UPDATES, ema_decay=decay))
    assert [(f.severity, f.bearing) for f in found] == ([] if decay == 0.99 else [(Severity.HIGH, Bearing.CAUSE)])
    assert all(str(f.measured["known"]).startswith(f"1 - {decay}^{UPDATES}") for f in found)


def test_files_of_their_own_without_a_decay(tmp_path: Path) -> None:
    steps = course()
    weights = write_safetensors(tmp_path / "model.safetensors", steps[-1])
    (found,) = told(weights, write_npz(tmp_path / "model_ema.npz", averaged(steps, 0.9971, zero=True)))
    assert (found.severity, found.bearing, found.where.file) == (Severity.MEDIUM, Bearing.SIGN,
                                                                 str(tmp_path / "model_ema.npz"))


@pytest.mark.parametrize("grow", [0.2, 1.0, 8.0])
@pytest.mark.parametrize("decay", [0.99, 0.999])
@pytest.mark.parametrize("zero", [True, False])
def test_averages_that_were_corrected_or_began_as_a_copy(grow: float, decay: float, zero: bool, tmp_path: Path) -> None:
    steps = course(grow)
    average = averaged(steps, decay, zero, corrected=zero)
    assert told(checkpoint(tmp_path / "c.pt", steps[-1], average, step=UPDATES, ema_decay=decay)) == []


def test_weights_that_grew_and_a_target_network(tmp_path: Path) -> None:
    steps = course(8.0)
    grown = [{n: v * np.float32(1 + t / UPDATES if v.ndim > 1 else 1) for n, v in s.items()}
             for t, s in enumerate(steps)]
    assert told(checkpoint(tmp_path / "c.pt", grown[-1], averaged(grown, 0.999, zero=False), step=UPDATES)) == []


def test_broken_averages(tmp_path: Path) -> None:
    steps = course()
    average = averaged(steps, 0.999, zero=True)
    empty = {n: 0 * v for n, v in average.items()}
    bad = {n: np.full_like(v, np.nan) for n, v in average.items()}
    for at, one in enumerate((empty, bad, dict(list(average.items())[:2]))):
        assert told(checkpoint(tmp_path / f"{at}.pt", steps[-1], one, step=UPDATES, ema_decay=0.999)) == []
