"""Running statistics and scales of another layer, and statistics that stood still between two checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weight_planting as planted

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import examine

Arrays = dict[str, Any]
FORMS = ["npz", "torch"]


def _told(rule: str, *paths: Path) -> list[Finding]:
    report = examine(*paths)
    assert not report.notes
    return [f for f in report.findings if f.rule == rule and f.severity is not Severity.INFO]


def _copied(to: int = 3, of: int = 1, only: tuple[str, ...] = ("running_mean", "running_var")) -> Arrays:
    made = planted.convolutions()
    return made | {f"layers.{to}.bn.{n}": made[f"layers.{of}.bn.{n}"] for n in only}


@pytest.mark.parametrize("form", FORMS)
def test_statistics_of_another_layer(form: str, tmp_path: Path) -> None:
    (found,) = _told("W151", planted.write(form, tmp_path, _copied()))
    assert (found.measured["kind"], found.measured["name"]) == ("statistics", "layers.3.bn.running_var")
    assert found.measured["other"] == "layers.1.bn.running_var"


def _shared() -> Arrays:
    """One layer under two names."""
    made = planted.convolutions()
    return made | {n.replace("layers.1.", "layers.3."): v for n, v in made.items() if n.startswith("layers.1.")}


def _fresh() -> Arrays:
    made = planted.convolutions()
    return made | {n: (np.ones if n.endswith("var") else np.zeros)(24, "<f4") for n in made if "running" in n}


def _one_for_all() -> Arrays:
    made = planted.convolutions()
    return made | {n: made[f"layers.1.bn.{n.rpartition('.')[2]}"] for n in made if "running" in n}


@pytest.mark.parametrize("sound", [planted.convolutions, _shared, _fresh, _one_for_all])
def test_statistics_by_design(sound: Callable[[], Arrays], tmp_path: Path) -> None:
    assert _told("W151", planted.write("npz", tmp_path, sound())) == []


def _quantised(layers: int = 6, kernel: bool = False, suffix: str = "weight_scale") -> Arrays:
    made: Arrays = {}
    rng = np.random.default_rng(0)
    for i in range(layers):
        shape = (24, 24, 3, 3) if kernel else (32, 48)
        weight = rng.standard_t(4, shape) * rng.lognormal(0, 0.3, (shape[0], *[1] * (len(shape) - 1))) * 0.1
        scale = np.abs(weight).reshape(shape[0], -1).max(1) / 127
        made[f"h.{i}.weight"] = np.rint(weight / scale.reshape(-1, *[1] * (len(shape) - 1))).astype(np.int8)
        made[f"h.{i}.{suffix}"] = scale.astype("<f4")
    return made


@pytest.mark.parametrize("kernel", [False, True])
@pytest.mark.parametrize("suffix", ["weight_scale", "SCB", "absmax"])
def test_scales_of_another_layer(kernel: bool, suffix: str, tmp_path: Path) -> None:
    arrays = _quantised(kernel=kernel, suffix=suffix)
    arrays[f"h.4.{suffix}"] = arrays[f"h.2.{suffix}"]
    (found,) = _told("W151", planted.write("npz", tmp_path, arrays))
    assert {found.measured["name"], found.measured["other"]} == {f"h.4.{suffix}", f"h.2.{suffix}"}
    assert not found.measured["sure"] or found.measured["name"] == f"h.4.{suffix}"


def _with_zeros(shared: bool) -> Arrays:
    """Bytes from the least to the largest of each line, whose zero points are all over the range."""
    made: Arrays = {}
    rng = np.random.default_rng(4)
    for i in range(6):
        weight = 0.1 * (rng.exponential(size=(32, 48)) - 1) * rng.choice([-1, 1], (32, 1))  # means of zero, skewed
        low, high = weight.min(axis=1, keepdims=True), weight.max(axis=1, keepdims=True)
        scale, zero = (high - low) / 255, np.clip(np.rint(-low / (high - low) * 255), 0, 255)
        made |= {f"h.{i}.qweight": np.clip(np.rint(weight / scale + zero), 0, 255).astype(np.uint8),
                 f"h.{i}.scales": scale[:, 0].astype("<f4"), f"h.{i}.zeros": zero[:, 0].astype(np.uint8)}
    return made | ({"h.4.zeros": made["h.1.zeros"]} if shared else {})


@pytest.mark.parametrize("shared", [True, False])
def test_zero_points_of_another_layer(shared: bool, tmp_path: Path) -> None:
    found = _told("W151", planted.write("npz", tmp_path, _with_zeros(shared)))
    assert [(f.measured["name"], f.measured["sure"]) for f in found] == ([("h.4.zeros", True)] if shared else [])


def test_the_copy_is_told_by_layers_of_its_shape(tmp_path: Path) -> None:
    """Scales of a first layer of few inputs are larger; codes that hardly scatter do not tell whose they are."""
    arrays, rng = _quantised(kernel=True), np.random.default_rng(2)
    arrays["h.0.weight"] = rng.integers(-127, 128, (24, 1, 3, 3)).astype(np.int8)
    arrays["h.0.weight_scale"] = rng.uniform(0.02, 0.03, 24).astype("<f4")
    arrays["h.3.weight_scale"] = arrays["h.0.weight_scale"]
    (found,) = _told("W151", planted.write("npz", tmp_path, arrays))
    assert (found.measured["name"], found.measured["sure"]) == ("h.3.weight_scale", True)


def _scales_alike() -> Arrays:
    return {n: np.full_like(v, 0.01) if v.ndim == 1 else v for n, v in _quantised().items()}


def _scales_of_inputs() -> Arrays:
    made = _quantised()
    shared = np.random.default_rng(1).uniform(0.1, 1, 48).astype("<f4")
    return made | {f"h.{i}.input_scale": shared for i in range(6)}


def _scales_of_twins() -> Arrays:
    made = _quantised()
    return made | {n.replace("h.2.", "h.5."): v for n, v in made.items() if n.startswith("h.2.")}


@pytest.mark.parametrize("sound", [_quantised, _scales_alike, _scales_of_inputs, _scales_of_twins])
def test_scales_by_design(sound: Callable[[], Arrays], tmp_path: Path) -> None:
    assert _told("W151", planted.write("npz", tmp_path, sound())) == []


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_vectors_that_are_no_numbers(bad: float, tmp_path: Path) -> None:
    arrays = _copied()
    arrays["layers.3.bn.running_var"] = arrays["layers.3.bn.running_var"].copy()
    arrays["layers.3.bn.running_var"][2] = bad
    assert _told("W151", planted.write("npz", tmp_path, arrays)) == []


def _later(by: float, *still: str, frozen: tuple[str, ...] = (), batches: int = 0) -> tuple[Arrays, Arrays]:
    """Two checkpoints: all moved by a share of its norm, statistics with these ends did not."""
    rng, before = np.random.default_rng(5), planted.convolutions()
    after: Arrays = {}
    for name, value in before.items():
        if name.endswith("num_batches_tracked"):
            after[name] = value + batches
        elif name.endswith(still) or name.startswith(frozen or ("-",)):
            after[name] = value
        else:
            moved = value + by * np.abs(value).mean() * rng.standard_normal(value.shape)
            after[name] = np.abs(moved).astype("<f4") if name.endswith("var") else moved.astype("<f4")
    return after, before


def _pair(folder: Path, form: str, made: tuple[Arrays, Arrays]) -> list[Path]:
    return [planted.write(form, folder, a, n) for a, n in zip(made, ("step_200", "step_100"), strict=True)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("by", "batches", "severity"), [(0.3, 0, Severity.MEDIUM), (1.0, 0, Severity.HIGH),
                                                         (0.05, 300, Severity.HIGH)])
def test_statistics_that_stood_still(by: float, batches: int, severity: Severity, form: str, tmp_path: Path) -> None:
    made = _later(by, "running_mean", "running_var", batches=batches)
    (found,) = _told("W152", *_pair(tmp_path, form, made))
    assert (found.severity, found.measured["layers"]) == (severity, 6)


def test_some_layers_stood_still(tmp_path: Path) -> None:
    ends = tuple(f"layers.{i}.bn.running_{n}" for i in (1, 4) for n in ("mean", "var"))
    (found,) = _told("W152", *_pair(tmp_path, "npz", _later(0.1, *ends)))
    assert (found.severity, found.measured["layers"], found.measured["of"]) == (Severity.MEDIUM, 2, 6)


@pytest.mark.parametrize(("by", "still", "frozen", "batches"), [
    (0.1, (), ("layers.1", "layers.4"), 0), (0.4, (), (), 300), (0.02, ("running_mean", "running_var"), (), 0),
    (0.4, ("running_mean", "running_var"), ("layers.0",), 0),
    (0.4, ("running_mean", "running_var", "bn.weight", "bn.bias"), (), 0)])
def test_statistics_that_moved_or_are_frozen(by: float, still: tuple[str, ...], frozen: tuple[str, ...], batches: int,
                                             tmp_path: Path) -> None:
    assert _told("W152", *_pair(tmp_path, "npz", _later(by, *still, frozen=frozen, batches=batches))) == []


def test_statistics_at_the_start_and_of_another_shape(tmp_path: Path) -> None:
    after, before = _later(1.0, "running_mean", "running_var")
    fresh = {n: v for n, v in _fresh().items() if "running" in n}
    assert _told("W152", *_pair(tmp_path, "npz", (after | fresh, before | fresh))) == []
    after |= {n: v for n, v in _later(1.0)[0].items() if "running" in n}
    after["layers.1.bn.running_var"] = np.ones(7, "<f4")
    after["layers.2.bn.running_var"] = np.full(24, np.nan, "<f4")
    assert _told("W152", *_pair(tmp_path, "npz", (after, before))) == []
