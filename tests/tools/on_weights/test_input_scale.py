"""Statistics of a first layer that its input, as the configuration normalises it, cannot give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weight_planting as planted

from traindx_tools.finding import Finding
from traindx_tools.on_weights import examine

IMAGENET = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}


def with_statistics(form: str, home: Path, config: Any, raw: bool, first: str = "conv") -> Path:
    """Convolutions whose first statistics are those of images, normalised or from 0 to 255."""
    rng = np.random.default_rng(0)
    made = planted.convolutions()
    weight = made["layers.0.conv.weight"]
    images = np.clip(np.repeat(rng.uniform(0, 1, (400, 3, 1, 1)), 3, 2).repeat(3, 3)
                     + 0.1 * rng.normal(size=(400, 3, 3, 3)), 0, 1)
    mean, std = (np.array(IMAGENET[k])[:, None, None] for k in ("mean", "std"))
    outputs = np.einsum("nchw,ochw->no", 255 * images if raw else (images - mean) / std, weight)
    made |= {"layers.0.bn.running_mean": outputs.mean(0).astype(np.float32),
             "layers.0.bn.running_var": outputs.var(0).astype(np.float32)}
    home.mkdir(parents=True, exist_ok=True)
    if config is not None:
        (home / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    return planted.write(form, home, made, "model")


def told(path: Path) -> list[Finding]:
    report = examine(path)
    assert not [n for n in report.notes if "failed" in n]
    return [f for f in report.findings if f.rule == "W108"]


@pytest.mark.parametrize("form", ["safetensors", "torch", "npz"])
@pytest.mark.parametrize("config", [
    {"preprocess": IMAGENET}, {"data": {"image_mean": IMAGENET["mean"], "image_std": IMAGENET["std"]}}, IMAGENET,
])
def test_statistics_of_raw_images(form: str, config: Any, tmp_path: Path) -> None:
    (found,) = told(with_statistics(form, tmp_path / "a", config, True))
    assert (found.measured["kind"], found.measured["name"]) == ("input", "layers.0.bn")
    assert told(with_statistics(form, tmp_path / "b", config, False)) == []


def test_a_processor_beside_the_model(tmp_path: Path) -> None:
    path = with_statistics("safetensors", tmp_path, None, True)
    assert told(path) == []  # nothing says that inputs are normalised
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(
        {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}))
    assert [f.measured["kind"] for f in told(path)] == ["input"]


@pytest.mark.parametrize("config", [
    {"mean": [123.7, 116.3, 103.5], "std": [58.4, 57.1, 57.4]}, {"mean": 0.5}, {"mean": ["a"], "std": ["b"]},
    '{"mean": [0.5, 0.5', {"mean": [0.5], "std": [0.5]}, {"mean": [0.0, 0.0, 0.0], "std": [0.0, 0.0, 0.0]},
])
def test_configurations_that_say_otherwise_or_are_broken(config: Any, tmp_path: Path) -> None:
    assert told(with_statistics("safetensors", tmp_path, config, True)) == []


@pytest.mark.parametrize("form", ["safetensors", "torch", "npz"])
@pytest.mark.parametrize(("scale", "config", "kinds"), [
    (0.1, {"mean": [1319.4, 1465.8, 2955.6], "std": [1316.4, 1237.6, 1178.8]}, ["input"]),
    (1.0, {"mean": [1319.4, 1465.8, 2955.6], "std": [1316.4, 1237.6, 1178.8]}, []),
    (0.1, {"mean": [1319.4, 1465.8], "std": [1316.4, 1237.6]}, []),
    (0.1, {"mean": [1319.4, 1465.8, 2955.6], "std": [0.0, 0.0, 0.0]}, []),
    (0.1, {}, []),
])
def test_statistics_of_inputs_that_were_not_divided_by_their_deviation(
        form: str, scale: float, config: dict[str, list[float]], kinds: list[str], tmp_path: Path) -> None:
    """Smooth pictures: neighbouring values of one channel are nearly alike, and some filters hardly answer."""
    rng = np.random.default_rng(1)
    made = planted.convolutions()
    weight = made["layers.0.conv.weight"]
    smooth = rng.normal(size=(4000, 3, 1, 1)) + 0.1 * rng.normal(size=(4000, 3, 3, 3))
    outputs = np.einsum("nchw,ochw->no", scale * smooth, weight)
    made |= {"layers.0.bn.running_mean": outputs.mean(0).astype(np.float32),
             "layers.0.bn.running_var": outputs.var(0).astype(np.float32)}
    (tmp_path / "config.json").write_text(json.dumps(config))
    path = planted.write(form, tmp_path, made, "model")
    assert [f.measured["kind"] for f in told(path) if f.measured["kind"] == "input"] == kinds


@pytest.mark.parametrize(("raw", "beside", "kinds"), [
    (True, IMAGENET, ["input"]), (False, IMAGENET, []), (True, {"data": IMAGENET}, ["input"]),
    (True, {"mean": [120.0, 116.0, 103.0], "std": [58.0, 57.0, 57.0]}, []),  # of raw pixels, and said so
    (True, {"mean": [0.4] * 6, "std": [0.2] * 6}, []), (True, {"mean": "0.5", "std": None}, []),
])
def test_a_normalisation_that_the_checkpoint_itself_keeps(raw: bool, beside: dict[str, Any], kinds: list[str],
                                                          tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = with_statistics("torch", tmp_path, None, raw)
    made = torch.load(path, weights_only=True)
    made = made.get("model", made) if isinstance(made, dict) else made
    torch.save({"model": {**made, "head.weight": torch.randn(6, 24)}, **beside}, tmp_path / "kept.pt")
    assert [f.measured["kind"] for f in told(tmp_path / "kept.pt")] == kinds


def test_means_of_as_many_outputs_are_no_normalisation_of_inputs(tmp_path: Path) -> None:
    """Targets that were standardised: three of them, as there are three colours."""
    torch = pytest.importorskip("torch")
    path = with_statistics("torch", tmp_path, None, True)
    made = torch.load(path, weights_only=True)
    torch.save({"model": {**made.get("model", made), "head.weight": torch.randn(3, 24)}, **IMAGENET},
               tmp_path / "kept.pt")
    assert told(tmp_path / "kept.pt") == []
