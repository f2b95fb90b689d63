"""Running statistics at their initial values in a model that was trained, in all layers or in some (W108)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weight_planting as planted

from traindx_tools.on_weights import examine

LAYERS, WIDTH = 4, 24
NAMES = {"torch": ("layers.{}.bn", ".weight", ".bias", ".running_mean", ".running_var", "layers.{}.conv.weight"),
         "keras": ("bn_{}", "/gamma", "/beta", "/moving_mean", "/moving_variance", "conv_{}/kernel"),
         "haiku": ("net/~/batch_norm_{}", ".scale", ".offset", "/~/mean_ema.average", "/~/var_ema.average",
                   "net/~/conv_{}.w")}  # fmt: skip


def _network(names: str = "torch", trained: bool = True, drawn: bool = False, layers: int = LAYERS) -> dict[str, Any]:
    """Layers at their first statistics. `trained`: shifts and first directions moved; `drawn`: scales are drawn."""
    rng = np.random.default_rng(0)
    module, scale, shift, mean, var, kernel = NAMES[names]
    made: dict[str, Any] = {}
    for i in range(layers):
        weight = rng.standard_normal((WIDTH, WIDTH)) * WIDTH**-0.5
        if trained:
            weight += 8 * np.outer(rng.standard_normal(WIDTH), rng.standard_normal(WIDTH)) / WIDTH
        made[kernel.format(i)] = weight
        bn = module.format(i)
        made[bn + scale] = np.ones(WIDTH) + 0.02 * rng.standard_normal(WIDTH) * (trained or drawn)
        made[bn + shift] = 0.02 * rng.standard_normal(WIDTH) * trained
        made[bn + mean], made[bn + var] = np.zeros(WIDTH), np.full(WIDTH, float(names != "haiku"))
    return {n: w.astype(np.float32) for n, w in made.items()}


def _without_affine(a: dict[str, Any]) -> dict[str, Any]:
    return {n: w for n, w in a.items() if not n.endswith(("bn.weight", "bn.bias"))}


def _found(file: Path) -> list[Any]:
    seen = examine(file)
    assert not [n for n in seen.notes if "failed" in n]
    return [f for f in seen.findings if f.rule == "W108" and f.measured["kind"] == "never-updated"]


@pytest.mark.parametrize(("form", "names"), [("safetensors", "torch"), ("npz", "torch"), ("npz", "keras"),
                                             ("npz", "haiku")])
def test_all_layers_of_a_trained_model(form: str, names: str, tmp_path: Path) -> None:
    (found,) = _found(planted.write(form, tmp_path, _network(names)))
    assert found.measured["layers"] == LAYERS
    assert "was trained" in found.statement
    assert _found(planted.write(form, tmp_path, _network(names, trained=False), "fresh")) == []
    assert _found(planted.write(form, tmp_path, _network(names, trained=False, drawn=True), "drawn")) == []


def _flax(path: Path, a: dict[str, Any], step: int) -> Path:
    serialization = pytest.importorskip("flax.serialization")
    tree: dict[str, Any] = {"params": {}, "batch_stats": {}, "step": np.array(step)}
    for name, w in a.items():
        *module, last = name.split(".")
        part, last = {"running_mean": ("batch_stats", "mean"), "running_var": ("batch_stats", "var")}.get(
            last, ("params", {"weight": "scale" if w.ndim == 1 else "kernel"}.get(last, last)))
        tree[part].setdefault("_".join(module), {})[last] = w
    path.write_bytes(serialization.msgpack_serialize(tree))
    return path


@pytest.mark.parametrize(("step", "trained", "words"), [(100, True, "bias was trained"), (100, False, "step is 100"),
                                                        (0, False, "")])
def test_statistics_of_flax_beside_their_parameters(step: int, trained: bool, words: str, tmp_path: Path) -> None:
    found = _found(_flax(tmp_path / "state.msgpack", _network(trained=trained), step))
    assert [words in f.statement for f in found] == [True] * bool(words)


@pytest.mark.parametrize(("name", "trained", "words"), [("step_1200", False, "called step_1200"),
                                                        ("last", True, "no draw of an initialiser"),
                                                        ("last", False, "")])
def test_layers_without_scale_and_shift(name: str, trained: bool, words: str, tmp_path: Path) -> None:
    found = _found(planted.write("npz", tmp_path, _without_affine(_network(trained=trained)), name))
    assert [words in f.statement for f in found] == [True] * bool(words)


@pytest.mark.parametrize("form", ["safetensors", "npz"])
def test_some_layers_beside_others_that_moved(form: str, tmp_path: Path) -> None:
    a = planted.convolutions()
    for i in (2, 3):
        a[f"layers.{i}.bn.running_mean"][:], a[f"layers.{i}.bn.running_var"][:] = 0, 1
    (found,) = _found(planted.write(form, tmp_path, a))
    assert "2 of 6 layers: layers.2.bn, layers.3.bn" in found.statement
    assert "4 of the 6 layers have moved" in found.statement


def _nan(a: dict[str, Any]) -> None:
    a["layers.1.bn.running_var"][:] = np.nan
    a["layers.1.bn.bias"][:] = np.nan


def _one_value(a: dict[str, Any]) -> None:
    for name in [n for n in a if n.startswith("layers.1.bn.")]:
        a[name] = a[name][:1]


@pytest.mark.parametrize("change", [_nan, _one_value])
def test_values_that_are_not_finite_or_too_few(change: Callable[[dict[str, Any]], None], tmp_path: Path) -> None:
    a = _network(trained=False)
    change(a)
    assert _found(planted.write("npz", tmp_path, a)) == []
