"""W171: values of a quantised matrix, and zero points, that wrapped around instead of being clipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from weight_planting import convolutions, stack, write, write_npz

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import of_run

Arrays = dict[str, Any]
ODD = 2


def told(*files: Path) -> list[Finding]:
    return [f for f in of_run([str(f) for f in files]).findings if f.rule == "W171"]


def matrices(arrays: Arrays) -> list[str]:
    return [n for n, v in arrays.items() if v.ndim > 1 and v.size >= 1024]


def symmetric(arrays: Arrays, wraps: set[str], tight: float = 0.5, lines: bool = True) -> Arrays:
    """int8 with a scale a row, or one; `tight`: of the largest value, that the last code stands for."""
    made: Arrays = {}
    for name, values in arrays.items():
        if name not in matrices(arrays):
            made[name] = values
            continue
        top = np.abs(values.reshape(len(values), -1)).max(1) if lines else np.abs(values).max()[None]
        scale = (tight * top / 127).astype(np.float32)
        codes = np.rint(values / scale.reshape(-1, *[1] * (values.ndim - 1))).astype(np.int64)
        head = name.removesuffix(".weight")
        made[f"{head}.qweight"] = (codes if name in wraps else np.clip(codes, -127, 127)).astype(np.int8)
        made[f"{head}.scale"] = scale
    return made


def asymmetric(arrays: Arrays, store: Any, wraps: set[str]) -> Arrays:
    """uint8 with a zero point a row; those of `wraps` go through int8."""
    made: Arrays = {}
    for name in matrices(arrays):
        values = arrays[name]
        flat = values.reshape(len(values), -1)
        low, high = np.minimum(flat.min(1), 0), np.maximum(flat.max(1), 0)
        scale = ((high - low) / 255).astype(np.float32)
        zero = np.rint(-low / scale).astype(np.int64)
        shape = (-1, *[1] * (values.ndim - 1))
        head = name.removesuffix(".weight")
        codes = np.rint(values / scale.reshape(shape)) + zero.reshape(shape)
        made[f"{head}.q"] = np.clip(codes, 0, 255).astype(np.uint8)
        made |= {f"{head}.scale": scale,
                 f"{head}.zero_point": (zero.astype(np.int8) if name in wraps else zero).astype(store)}
    return made


@pytest.mark.parametrize("made", [stack, convolutions])
@pytest.mark.parametrize("lines", [True, False])
def test_values_of_one_matrix_wrapped(made: Any, lines: bool, tmp_path: Path) -> None:
    arrays = made()
    odd = matrices(arrays)[ODD]
    whole = write("safetensors", tmp_path, arrays, "float")
    codes = write_npz(tmp_path / "int8.npz", symmetric(arrays, {odd}, lines=lines))
    (found,) = told(whole, codes)
    assert (found.severity, found.measured["name"]) == (Severity.HIGH, f"{odd.removesuffix('.weight')}.qweight")
    assert found.where.file == str(codes)
    assert "all are clipped" in found.statement


def test_values_of_most_matrices_wrapped(tmp_path: Path) -> None:
    arrays = stack()
    odd = set(matrices(arrays)[1:])
    whole = write_npz(tmp_path / "float.npz", arrays)
    found = told(whole, write_npz(tmp_path / "int8.npz", symmetric(arrays, odd, 0.4)))
    assert {str(f.measured["name"]).removesuffix(".qweight") for f in found} == {n.removesuffix(".weight") for n in odd}


@pytest.mark.parametrize("tight", [0.2, 0.5, 1.0])
def test_values_that_are_clipped(tight: float, tmp_path: Path) -> None:
    arrays = convolutions()
    whole = write_npz(tmp_path / "float.npz", arrays)
    assert told(whole, write_npz(tmp_path / "int8.npz", symmetric(arrays, set(), tight))) == []


def test_codes_of_another_model(tmp_path: Path) -> None:
    codes = write_npz(tmp_path / "int8.npz", symmetric(stack(seed=5), set(), 0.5))
    assert told(write_npz(tmp_path / "float.npz", stack()), codes) == []


def shifted(arrays: Arrays) -> Arrays:
    """Rows that lie more on one side, each by its own share: zero points anywhere in the range."""
    rng = np.random.default_rng(3)
    return {n: (v + v.std() * rng.uniform(-2, 2, (len(v), *[1] * (v.ndim - 1)))).astype(np.float32)
            if n in matrices(arrays) else v for n, v in arrays.items()}


def test_zero_points_wrapped(tmp_path: Path) -> None:
    arrays = shifted(convolutions())
    odd = matrices(arrays)[ODD]
    (found,) = told(write_npz(tmp_path / "u8.npz", asymmetric(arrays, np.int16, {odd})))
    assert (found.measured["kind"], found.measured["name"]) == ("zero-points",
                                                                f"{odd.removesuffix('.weight')}.zero_point")
    assert told(write_npz(tmp_path / "sound.npz", asymmetric(arrays, np.int16, set()))) == []


def test_zero_points_of_another_convention(tmp_path: Path) -> None:
    arrays = shifted(convolutions())
    assert told(write_npz(tmp_path / "all.npz", asymmetric(arrays, np.int8, set(matrices(arrays))))) == []


def test_channels_of_one_sign_beside_their_values(tmp_path: Path) -> None:
    arrays = convolutions()
    name = matrices(arrays)[ODD]
    arrays[name][:3] = np.abs(arrays[name][:3]) + 0.9 * np.ptp(arrays[name])
    made = asymmetric(arrays, np.int16, set())
    head, flat = name.removesuffix(".weight"), arrays[name].reshape(len(arrays[name]), -1)
    for row in range(3):  # a range that leaves zero out
        scale = np.float32(np.ptp(flat[row]) / 255)
        zero = int(np.rint(-flat[row].min() / scale))
        made[f"{head}.scale"][row], made[f"{head}.zero_point"][row] = scale, zero
        made[f"{head}.q"][row] = np.clip(np.rint(arrays[name][row] / scale) + zero, 0, 255)
    assert told(write_npz(tmp_path / "float.npz", arrays), write_npz(tmp_path / "u8.npz", made)) == []


def test_broken_files(tmp_path: Path) -> None:
    arrays = stack()
    name = matrices(arrays)[0]
    whole = write_npz(tmp_path / "float.npz", {**arrays, name: np.full_like(arrays[name], np.nan)})
    codes = symmetric(arrays, set())
    head = name.removesuffix(".weight")
    codes[f"{head}.qweight"] = np.zeros_like(codes[f"{head}.qweight"])
    codes["a.q"], codes["a.zero_point"] = np.zeros((64, 64), np.uint8), np.zeros((3, 5))
    assert told(whole, write_npz(tmp_path / "int8.npz", codes)) == []


def scaled(odd: set[str], tight: float, sign: bool = False) -> Arrays:
    """Dense layers with a scale a row; those of `odd` are divided by `tight` of it; `sign`: they have two codes."""
    rng = np.random.default_rng(8)
    made: Arrays = {}
    for name in ("inlet", "first", "second", "third", "outlet"):
        values = rng.normal(size=(24, 48)) * rng.uniform(0.5, 2.0, (24, 1))
        scale = np.abs(values).max(1, keepdims=True) / 127 * (tight if name in odd else 1.0)
        codes = np.sign(values) * 127 if sign and name in odd else np.clip(np.rint(values / scale), -127, 127)
        made |= {f"{name}.codes": codes.astype(np.int8), f"{name}.scale": scale[:, 0].astype(np.float32)}
    return made


@pytest.mark.parametrize("tight", [0.03, 0.1, 0.2])
def test_most_values_of_one_matrix_are_clipped(tight: float, tmp_path: Path) -> None:
    (found,) = told(write_npz(tmp_path / "int8.npz", scaled({"second"}, tight)))
    assert (found.measured["kind"], found.measured["name"]) == ("clipped", "second.codes")
    assert "scales that it was divided by are too small" in found.statement


@pytest.mark.parametrize(("odd", "tight", "sign"), [
    (set(), 1.0, False), ({"second"}, 0.7, False),  # a few are clipped, as a percentile leaves them
    ({"second"}, 0.1, True),  # two codes on purpose
    ({"inlet", "first", "second", "third", "outlet"}, 0.1, False),  # a convention of the file
])
def test_ends_that_are_hardly_used_or_meant(odd: set[str], tight: float, sign: bool, tmp_path: Path) -> None:
    assert told(write_npz(tmp_path / "int8.npz", scaled(odd, tight, sign))) == []


def test_codes_without_values_or_with_other_scales(tmp_path: Path) -> None:
    made = scaled({"second"}, 0.1)
    made |= {"third.codes": np.zeros((0, 48), np.int8), "first.scale": np.full(3, np.nan, np.float32)}
    told(write_npz(tmp_path / "int8.npz", made))
