"""Checkpoints of very many small tensors: what is asked of each may not grow with their number."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.on_weights import examine
from traindx_tools.on_weights.measuring import measure_all
from traindx_tools.on_weights.rules.w103_scale import _median_of_others
from traindx_tools.on_weights.seen import apart
from traindx_tools.on_weights.single_values import measured
from traindx_tools.on_weights.statistics import measure
from traindx_tools.on_weights.tensor import STORED, Damaged, InFile, InMemory, Tensor

safetensors = pytest.importorskip("safetensors.numpy")
Within = Callable[[float], AbstractContextManager[None]]


def _experts(layers: int, experts: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(0)
    return {f"model.layers.{layer}.mlp.experts.{e}.{kind}_proj.weight": (draw.normal(size=(4, 4)) * 0.02).astype("f4")
            for layer in range(layers) for e in range(experts) for kind in ("gate", "up", "down")}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["experts", "vectors", "values"])
def test_twenty_thousand_tensors_take_seconds(tmp_path: Path, within: Within, form: str) -> None:
    draw = np.random.default_rng(0)
    tensors = (_experts(4, 1_667) if form == "experts"
               else {f"t{i}": draw.normal(size=10).astype("f4") for i in range(20_000)} if form == "vectors"
               else {f"layers.{i // 10}.p{i % 10}": np.asarray(draw.normal(), "f4") for i in range(100_000)})
    safetensors.save_file(tensors, tmp_path / "many.safetensors")
    with within(80):
        examine(tmp_path / "many.safetensors")


@pytest.mark.slow
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


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "int8", "bool"])
def test_a_single_value_is_measured_as_any_other_tensor(dtype: str) -> None:
    stored = np.zeros(6, STORED[dtype])
    stored.view(np.uint8)[:] = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 256, stored.nbytes)
    if dtype == "float32":
        stored[:3] = np.nan, np.inf, -np.inf
    tensors = [Tensor(f"t{i}", dtype, (1,) * (i % 2), InMemory(value.tobytes()), "f") for i, value in enumerate(stored)]
    for one, other in zip(measured(tensors), map(measure, tensors), strict=True):
        assert (one.low, one.high, one.nan, one.inf, one.first_bad, one.finite, one.constant) == (
            other.low, other.high, other.nan, other.inf, other.first_bad, other.finite, other.constant)
        assert np.allclose(one.row_squares, other.row_squares, rtol=1e-6)
        assert np.array_equal(one.sample, other.sample, equal_nan=dtype.startswith(("f", "b")) and dtype != "bool")
        assert (one.stored_sample.tobytes(), one.row_prints.size) == (other.stored_sample.tobytes(), 0)


def test_a_file_that_ends_before_its_last_value_is_named(tmp_path: Path) -> None:
    (tmp_path / "cut.bin").write_bytes(bytes(10))
    tensors = [Tensor(f"t{i}", "float32", (), InFile(str(tmp_path / "cut.bin"), 4 * i), "f") for i in range(3)]
    with pytest.raises(Damaged, match="ends inside a tensor"):
        measure_all(tensors)


def test_names_of_one_value_are_measured_once_and_time_that_is_up_leaves_the_rest_out() -> None:
    shared = [Tensor(n, "float32", (), InMemory(np.float32(2).tobytes()), "f", ("f", 0)) for n in ("a", "b")]
    others = [Tensor("c", "int32", (), InMemory(np.int32(7).tobytes()), "f"),
              Tensor("d", "float32", (3,), InMemory(np.arange(3, dtype="f4").tobytes()), "f")]
    found, left = measure_all([*shared, *others])
    told = [(found[id(t)].name, found[id(t)].high) for t in (*shared, *others)]
    assert told == [("a", 2), ("b", 2), ("c", 7), ("d", 2)]
    assert not left
    assert measure_all([*shared, *others], seconds=-1)[1] == [*shared, *others]


def test_one_value_among_its_like_is_still_told(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    scales = {f"layers.{i}.scale": np.asarray(draw.uniform(0.9, 1.1), "f4") for i in range(40)}
    safetensors.save_file(scales, tmp_path / "good.safetensors")
    assert not examine(tmp_path / "good.safetensors").findings
    safetensors.save_file({**scales, "layers.7.scale": np.asarray(900.0, "f4")}, tmp_path / "bad.safetensors")
    assert [(f.rule, f.measured["name"]) for f in examine(tmp_path / "bad.safetensors").findings] == [
        ("W103", "layers.7.scale")]
