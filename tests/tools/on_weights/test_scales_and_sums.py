"""Scales of norms that let nothing through beside their siblings, and sums of a moving average that are large."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_weights import of_run

Array = np.ndarray[Any, Any]


def told(folder: Path, tensors: dict[str, Array]) -> list[Finding]:
    np.savez(folder / "model.npz", **tensors)  # type: ignore[arg-type]
    return [f for f in of_run([str(folder / "model.npz")]).findings if f.rule == "W103"]


def blocks() -> dict[str, Array]:
    rng = np.random.default_rng(4)
    made: dict[str, Array] = {}
    for i in range(6):
        made[f"h.{i}.norm.weight"] = 1 + 0.1 * rng.normal(size=48)
        made[f"h.{i}.norm.bias"] = 0.02 * rng.normal(size=48)
        made[f"h.{i}.fc.weight"] = 0.2 * rng.standard_t(8, size=(64, 48))
    return {n: t.astype(np.float32) for n, t in made.items()}


@pytest.mark.parametrize("scale", [1e-41, 1e-5])
def test_a_norm_that_lets_nothing_through(scale: float, tmp_path: Path) -> None:
    made = blocks()
    made["h.2.norm.weight"] = (made["h.2.norm.weight"] * scale).astype(np.float32)
    (found,) = told(tmp_path, made)
    assert found.where.module == "h.2.norm.weight"


@pytest.mark.parametrize("name", ["h.2.norm.bias", "h.2.norm.weight"])
def test_biases_near_zero_and_scales_that_are_zero(name: str, tmp_path: Path) -> None:
    """A bias begins at zero, and a branch that is closed on purpose has a scale of zero."""
    made = blocks()
    made[name] = made[name] * np.float32(0 if name.endswith("weight") else 1e-6)
    assert told(tmp_path, made) == []


def codebook(rng: np.random.Generator, *, agrees: bool) -> dict[str, Array]:
    codes, count = rng.normal(size=(32, 256)), rng.uniform(5, 4000, 256)
    sums = codes * count if agrees else rng.normal(size=codes.shape) * 2000
    made = {"vq.embed": codes, "vq.cluster_size": count, "vq.embed_avg": sums}
    for i, name in enumerate(("encoder.0", "encoder.3", "decoder.0", "decoder.3")):
        made[f"{name}.weight"] = 0.1 * rng.standard_t(8, size=(40 + 8 * i, 32))
    return {n: t.astype(np.float32) for n, t in made.items()}


def test_sums_of_a_moving_average_are_large(tmp_path: Path) -> None:
    assert told(tmp_path, codebook(np.random.default_rng(1), agrees=True)) == []


def test_a_matrix_that_is_no_such_sum(tmp_path: Path) -> None:
    (found,) = told(tmp_path, codebook(np.random.default_rng(1), agrees=False))
    assert found.where.module == "vq.embed_avg"


def test_empty_and_broken(tmp_path: Path) -> None:
    made = codebook(np.random.default_rng(1), agrees=True)
    made["vq.cluster_size"] = np.zeros(0, np.float32)
    made["vq.embed"] = np.full((32, 256), np.nan, np.float32)
    assert all(f.where.module == "vq.embed_avg" for f in told(tmp_path, made))
