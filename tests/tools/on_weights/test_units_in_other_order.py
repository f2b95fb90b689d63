"""W154: the units of one block in another order than what reads them, or those of another block."""

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


def _stack(layers: int = 6, width: int = 48, gated: bool = False, turned: bool = False) -> Arrays:
    """Units that are large on both of their sides. `turned`: inputs first, as flax and GPT-2 keep them."""
    rng, made = np.random.default_rng(0), {}
    for i in range(layers):
        units, values = rng.lognormal(0, 0.5, (4 * width, 1)), rng.lognormal(0, 0.5, (width, 1))

        def near(scale: Any) -> Any:
            return scale * rng.lognormal(0, 0.3, scale.shape)

        for name in ("gate", "up") if gated else ("up",):
            made[f"h.{i}.mlp.{name}.weight"] = rng.standard_normal((4 * width, width)) * near(units) * 0.1
        made[f"h.{i}.mlp.down.weight"] = rng.standard_normal((width, 4 * width)) * near(units).T * 0.1
        made[f"h.{i}.attn.v.weight"] = rng.standard_normal((width, width)) * near(values) * 0.1
        made[f"h.{i}.attn.o.weight"] = rng.standard_normal((width, width)) * near(values).T * 0.1
    return {n: np.ascontiguousarray(v.T if turned else v).astype("<f4") for n, v in made.items()}


def _permuted(arrays: Arrays, name: str, axis: int) -> Arrays:
    order = np.random.default_rng(5).permutation(arrays[name].shape[axis])
    return {**arrays, name: np.ascontiguousarray(arrays[name].take(order, axis=axis))}


def _told(path: Path) -> list[Finding]:
    report = examine(path)
    assert not report.notes
    return [f for f in report.findings if f.rule == "W154" and f.severity is not Severity.INFO]


SIDES = (("h.2.mlp.up.weight", 0), ("h.0.mlp.down.weight", 1), ("h.5.attn.v.weight", 0))
FORMS = ("safetensors", "sharded", "npz", "torch")


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("name", "axis", "form"), [
    pytest.param(*side, form, marks=[] if side is SIDES[0] or form == "npz" else pytest.mark.slow)
    for side in SIDES for form in FORMS])
def test_one_side_of_a_block(name: str, axis: int, turned: bool, form: str, tmp_path: Path) -> None:
    arrays = _permuted(_stack(turned=turned), name, 1 - axis if turned else axis)
    (found,) = _told(planted.write(form, tmp_path, arrays))
    assert found.measured["block"] == name[:3]
    assert name in found.measured["tensors"]  # type: ignore[operator]
    assert found.severity is (Severity.MEDIUM if "attn" in name else Severity.HIGH)


@pytest.mark.parametrize("name", ["gate", "up", "down"])
def test_of_three_matrices_the_one_is_named(name: str, tmp_path: Path) -> None:
    arrays = _permuted(_stack(gated=True), f"h.3.mlp.{name}.weight", int(name == "down"))
    (found,) = _told(planted.write("npz", tmp_path, arrays))
    assert (found.measured["tensors"], found.measured["relations"]) == ((f"h.3.mlp.{name}.weight",), 2)
    assert found.severity is Severity.HIGH


def test_a_matrix_of_another_block(tmp_path: Path) -> None:
    arrays = _stack(gated=True)
    arrays["h.4.mlp.down.weight"] = arrays["h.1.mlp.down.weight"] * np.float32(1.001)
    (found,) = _told(planted.write("npz", tmp_path, arrays))
    assert found.measured["tensors"] == ("h.4.mlp.down.weight",)


def _both_sides() -> Arrays:
    arrays = _stack()
    order = np.random.default_rng(5).permutation(192)
    return {**arrays, "h.2.mlp.up.weight": arrays["h.2.mlp.up.weight"][order],
            "h.2.mlp.down.weight": np.ascontiguousarray(arrays["h.2.mlp.down.weight"][:, order])}


def _fresh() -> Arrays:
    arrays, rng = _stack(), np.random.default_rng(3)
    return {n: (rng.standard_normal(v.shape) * 0.02).astype("<f4") if n.startswith("h.2.") else v
            for n, v in arrays.items()}


def _one_norm() -> Arrays:
    """Rows that are kept at norm one in a block."""
    arrays = _stack()
    weight = arrays["h.2.mlp.up.weight"]
    return {**arrays, "h.2.mlp.up.weight": (weight / np.linalg.norm(weight, axis=1, keepdims=True)).astype("<f4")}


def _two_kinds_of_blocks() -> Arrays:
    """In half of the blocks no relation holds."""
    arrays = _stack()
    for i in (0, 2, 4):
        arrays = _permuted(arrays, f"h.{i}.mlp.up.weight", 0)
    return arrays


def _pruned() -> Arrays:
    """The same units are gone on both sides of a block."""
    arrays = _stack()
    units = np.random.default_rng(2).permutation(192)[:90]
    up, down = arrays["h.3.mlp.up.weight"].copy(), arrays["h.3.mlp.down.weight"].copy()
    up[units], down[:, units] = 0, 0
    return {**arrays, "h.3.mlp.up.weight": up, "h.3.mlp.down.weight": down}


@pytest.mark.parametrize("sound", [_stack, planted.stack, _both_sides, _fresh, _one_norm, _two_kinds_of_blocks, _pruned,
                                   lambda: _stack(gated=True, turned=True)])
def test_what_looks_like_it(sound: Callable[[], Arrays], tmp_path: Path) -> None:
    assert _told(planted.write("npz", tmp_path, sound())) == []


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_no_numbers_and_other_shapes(value: float, tmp_path: Path) -> None:
    arrays = _permuted(_stack(), "h.2.mlp.up.weight", 0)
    arrays["h.3.mlp.up.weight"][0, 0] = value
    assert _told(planted.write("npz", tmp_path, arrays)) == []
    cut = _stack()
    cut["h.3.mlp.up.weight"] = cut["h.3.mlp.up.weight"][:50]
    assert _told(planted.write("npz", tmp_path, cut, "cut")) == []
