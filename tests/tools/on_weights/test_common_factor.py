"""Tensors that are another file's times one factor are told with what the factor is; training and averages are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from weight_planting import stack, write_npz, write_safetensors

from traindx_tools.errors import UnreadableInput
from traindx_tools.finding import Severity
from traindx_tools.on_weights import examine
from traindx_tools.on_weights.common_factor import known_factor

Arrays = dict[str, Any]


def _trained(a: Arrays, far: float = 0.02, seed: int = 3) -> Arrays:
    rng = np.random.default_rng(seed)
    return {n: (v + rng.standard_normal(v.shape) * far * np.sqrt(np.mean(v**2))).astype(np.float32)
            for n, v in a.items()}


def _factors(folder: Path, one: Arrays, other: Arrays, name: str = "b") -> list[Any]:
    first = write_npz(folder / "a.npz", one)
    return [f for f in examine(first, write_npz(folder / f"{name}.npz", other)).findings
            if f.rule == "W123" and f.severity is not Severity.INFO]


@pytest.mark.parametrize(("factor", "known"), [(0.5, "1/2"), (1 / 8, "1/8"), (255.0, "255"), (65536.0, "loss scale"),
                                               (1 - 0.999**1000, "1 - 0.999^1000"), (0.7312, "")])
def test_all_tensors_times_one_factor(factor: float, known: str, tmp_path: Path) -> None:
    a = stack(4)
    (found,) = _factors(tmp_path, a, {n: (v * np.float32(factor)) for n, v in a.items()}, "ema-step-1000")
    assert found.measured["kind"] == "all"
    assert found.measured["factor"] == pytest.approx(factor, rel=1e-5)
    assert known in str(found.measured["known"])
    assert known or not found.measured["known"]


def test_an_average_that_is_not_corrected_is_near_the_model_times_a_factor(tmp_path: Path) -> None:
    a = stack(4)
    average = {n: v * np.float32(1 - 0.9999**2000) for n, v in _trained(a).items()}
    first = write_safetensors(tmp_path / "step-2000.safetensors", a)
    other = write_safetensors(tmp_path / "ema.safetensors", average)
    (found,) = [f for f in examine(first, other).findings if f.rule == "W123"]
    assert found.measured["kind"] == "near"
    assert "1 - 0.9999^2000" in str(found.measured["known"])


def test_an_average_beside_its_model_in_one_file(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    a = stack(4)
    ema = {n: torch.from_numpy(v * np.float32(1 - 0.999**300)) for n, v in _trained(a, 0.01).items()}
    torch.save({"model": {n: torch.from_numpy(v) for n, v in a.items()}, "ema": ema, "global_step": 300},
               tmp_path / "c.pt")
    (found,) = [f for f in examine(tmp_path / "c.pt").findings if f.rule == "W123"]
    assert "1 - 0.999^300" in str(found.measured["known"])


def test_a_part_of_the_tensors_times_a_half(tmp_path: Path) -> None:
    a = stack(4)
    b = _trained(a) | {n: v * np.float32(0.5) for n, v in a.items() if n.startswith("h.2.attn")}
    (found,) = _factors(tmp_path, a, b)
    assert (found.measured["kind"], found.measured["factor"]) == ("part", pytest.approx(0.5))


def test_two_factors(tmp_path: Path) -> None:
    a = stack(4)
    found = _factors(tmp_path, a, {n: v * np.float32(0.25 if "mlp" in n else 0.5) for n, v in a.items()})
    assert sorted(f.measured["factor"] for f in found) == pytest.approx([0.25, 0.5])


def _decayed(a: Arrays) -> Arrays:
    """Trained with strong decay of matrices alone: they shrink by about the same share, scales do not."""
    return {n: v * np.float32(0.9 if v.ndim > 1 else 1.0) for n, v in _trained(a).items()}


def _without_gradient(a: Arrays) -> Arrays:
    return _trained(a) | {"head.weight": a["head.weight"] * np.float32(0.97)}


@pytest.mark.parametrize("healthy", [
    _trained, _decayed, _without_gradient, lambda a: _trained(a, 0.6), lambda a: dict(a),
    lambda a: {n: v * np.float32(1 - 1e-7) for n, v in _trained(a, 0.001).items()},
])  # fmt: skip
def test_training_and_late_averages_are_left_alone(healthy: Callable[[Arrays], Arrays], tmp_path: Path) -> None:
    a = stack(4)
    assert _factors(tmp_path, a, healthy(a), "step-90000") == []


def test_a_permutation_that_was_scaled_too_is_told_with_the_factor(tmp_path: Path) -> None:
    a = stack(4)
    b = _trained(a, 0.001)
    order = np.random.default_rng(4).permutation(32)
    b["h.1.attn.q.weight"] = b["h.1.attn.q.weight"][order] / 4
    first = write_npz(tmp_path / "a.npz", a)
    (found,) = [f for f in examine(first, write_npz(tmp_path / "b.npz", b)).findings if f.rule == "W119"]
    assert "times 0.25 (1/4" in found.statement


@pytest.mark.parametrize(("factor", "spread", "steps", "known"), [
    (1 / 16, 1e-7, [], "1/16"), (0.0631, 1e-3, [], ""), (-1.0, 1e-7, [], "-1"), (0.0952, 1e-3, [], ""),
    (1 / (1 - 0.99**50), 1e-6, [50], "1 - 0.99^50"), (1 - 0.9999**100000, 1e-3, [100000], ""),
])  # fmt: skip
def test_what_factors_are_known_from(factor: float, spread: float, steps: list[int], known: str) -> None:
    found = known_factor(factor, spread, steps)
    assert found.startswith(known)
    assert bool(found) is bool(known)


def test_values_that_are_no_numbers_and_a_cut_file(tmp_path: Path) -> None:
    a = stack(4)
    b = {n: v * np.float32(0.5) for n, v in a.items()}
    b["h.1.attn.q.weight"][0] = np.nan
    assert len(_factors(tmp_path, a, b)) == 1
    cut = write_safetensors(tmp_path / "cut.safetensors", b)
    cut.write_bytes(cut.read_bytes()[:60])
    with pytest.raises(UnreadableInput):
        examine(write_npz(tmp_path / "a.npz", a), cut)
