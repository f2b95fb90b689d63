"""Checkpoints of very many small tensors: what is asked of each may not grow with their number."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.on_weights import examine
from traindx_tools.on_weights.rules.w103_scale import _median_of_others
from traindx_tools.on_weights.seen import apart

safetensors = pytest.importorskip("safetensors.numpy")
Within = Callable[[float], AbstractContextManager[None]]


def _experts(layers: int, experts: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(0)
    return {f"model.layers.{layer}.mlp.experts.{e}.{kind}_proj.weight": (draw.normal(size=(4, 4)) * 0.02).astype("f4")
            for layer in range(layers) for e in range(experts) for kind in ("gate", "up", "down")}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["experts", "vectors"])
def test_twenty_thousand_tensors_take_seconds(tmp_path: Path, within: Within, form: str) -> None:
    draw = np.random.default_rng(0)
    tensors = (_experts(4, 1_667) if form == "experts"
               else {f"t{i}": draw.normal(size=10).astype("f4") for i in range(20_000)})
    safetensors.save_file(tensors, tmp_path / "many.safetensors")
    with within(80):
        examine(tmp_path / "many.safetensors")


def test_what_is_wrong_among_many_is_still_told(tmp_path: Path) -> None:
    tensors = _experts(4, 64)
    name = "model.layers.2.mlp.experts.17.up_proj.weight"
    tensors[name] = tensors[name] * 40
    copy, source = (f"model.layers.1.mlp.experts.{e}.gate_proj.weight" for e in (30, 9))
    tensors[copy] = tensors[source].copy()
    safetensors.save_file(tensors, tmp_path / "many.safetensors")
    told = {(f.rule, f.measured["name"]) for f in examine(tmp_path / "many.safetensors").findings}
    assert ("W103", name) in told
    assert any(rule == "W115" for rule, _ in told)


@pytest.mark.parametrize("count", [2, 3, 6, 7, 8, 20])
def test_neighbours_are_the_six_nearest(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count)
    nearest = [sorted((j for j in range(count) if j != i), key=lambda j, i=i: (abs(j - i), j))[:6]
               for i in range(count)]
    expected = [values[i] - np.median(values[nearest[i]]) for i in range(count)]
    assert np.allclose(apart(values, 0.0)[0], expected)


@pytest.mark.parametrize("count", [2, 3, 8, 9])
def test_the_median_without_one(count: int) -> None:
    values = np.sort(np.random.default_rng(count).integers(0, 5, count).astype(float))
    for at, value in enumerate(values):
        assert _median_of_others(values, float(value)) == np.median(np.delete(values, at))
