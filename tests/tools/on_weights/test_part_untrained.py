"""A part of one block at its initialisation among trained ones: an MLP, a projection, a third of a packed one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weight_planting as planted

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import examine

Arrays = dict[str, Any]


def _told(path: Path, of: Sequence[str] = ("W150", "W104")) -> list[Finding]:
    report = examine(path)
    assert not report.notes
    return [f for f in report.findings if f.rule in of and f.severity is not Severity.INFO]


def _drawn(arrays: Arrays, *heads: str, deviation: float = 0.02, uniform: bool = False) -> Arrays:
    """The same with fresh matrices and biases of zero below these names."""
    rng, made = np.random.default_rng(9), dict(arrays)
    for name, value in arrays.items():
        if name.startswith(heads):
            bound = value.shape[-1] ** -0.5
            made[name] = np.zeros_like(value) if value.ndim == 1 else (
                rng.uniform(-bound, bound, value.shape) if uniform else rng.standard_normal(value.shape) * deviation
            ).astype("<f4")
    return made


def _trained(layers: int = 6, width: int = 48) -> Arrays:
    """Matrices with a few directions that gradients have lifted."""
    rng, made = np.random.default_rng(4), planted.stack(layers, width)
    for name, value in made.items():
        if name.startswith("h.") and value.ndim == 2:
            made[name] = (value + sum(np.outer(*(rng.standard_normal(n) for n in value.shape)) for _ in range(2))
                          * 0.08).astype("<f4")
    return made


def _without_biases(arrays: Arrays) -> Arrays:
    return {n: v for n, v in arrays.items() if not n.endswith("bias")}


def _packed(arrays: Arrays) -> Arrays:
    """Query, key and value in one tensor."""
    made = dict(arrays)
    for i in range(sum(n.endswith("attn.q.weight") for n in arrays)):
        for end in ("weight", "bias"):
            made[f"h.{i}.attn.qkv.{end}"] = np.concatenate([made.pop(f"h.{i}.attn.{n}.{end}") for n in "qkv"])
    return made


@pytest.mark.parametrize("form", ["safetensors", "sharded", "npz", "torch"])
@pytest.mark.parametrize("part", [("h.2.mlp.",), ("h.0.attn.k",), ("h.4.attn.",), ("h.4.mlp.down", "h.4.attn.v")])
def test_parts_with_biases(part: tuple[str, ...], form: str, tmp_path: Path) -> None:
    path = planted.write(form, tmp_path, _drawn(planted.stack(5), *part))
    (finding,) = _told(path)
    assert (finding.rule, finding.measured["name"]) == ("W150", ".".join(part[0].split(".")[:2]))
    assert all(name.startswith(part) for name in finding.measured["tensors"])  # type: ignore[union-attr]


@pytest.mark.parametrize(("part", "uniform", "told"), [
    ("h.2.mlp.", False, True), ("h.3.attn.q", False, True), ("h.0.attn.v", False, False), ("h.0.attn.v", True, True)])
def test_parts_without_biases(part: str, uniform: bool, told: bool, tmp_path: Path) -> None:
    """A deviation alone says nothing of the first block, whose values may have hardly moved; a bound does."""
    fresh = _drawn(_without_biases(_trained()), part, uniform=uniform)
    found = _told(planted.write("npz", tmp_path, fresh))
    assert [f.measured["name"] for f in found] == [".".join(part.split(".")[:2])] * told
    assert _told(planted.write("npz", tmp_path, _without_biases(_trained()), "sound")) == []


def test_siblings_of_another_deviation(tmp_path: Path) -> None:
    """Their spectrum is hardly above noise; the norms of their rows and their deviation tell them from draws."""
    fresh = _drawn(_without_biases(planted.stack(6, 48)), "h.2.mlp.up")
    (found,) = _told(planted.write("npz", tmp_path, fresh))
    assert (found.measured["tensors"], found.severity) == (("h.2.mlp.up.weight",), Severity.MEDIUM)


@pytest.mark.parametrize("third", [0, 1, 2])
def test_a_third_of_a_packed_tensor(third: int, tmp_path: Path) -> None:
    arrays = _without_biases(_packed(_trained()))
    assert _told(planted.write("npz", tmp_path, arrays, "sound")) == []
    own = slice(third * 48, third * 48 + 48)
    arrays["h.3.attn.qkv.weight"][own] = np.random.default_rng(1).standard_normal((48, 48)) * 0.02
    (finding,) = _told(planted.write("npz", tmp_path, arrays))
    assert (finding.measured["name"], finding.measured["lines"]) == ("h.3", f"rows {own.start}-{own.stop - 1}")


def test_a_whole_block_is_told_once(tmp_path: Path) -> None:
    arrays = _drawn(planted.stack(6), "h.2.")
    arrays["h.2.norm.weight"] = np.ones(32, "<f4")
    assert [f.rule for f in _told(planted.write("npz", tmp_path, arrays))] == ["W104"]


def _experts() -> Arrays:
    return {n.replace("h.", "experts."): v for n, v in _drawn(planted.stack(6), "h.2.mlp.").items()}


def _adapters() -> Arrays:
    return {n.replace("mlp.up", "lora_A"): v for n, v in _drawn(_without_biases(planted.stack(6)), "h.2.mlp.up"
                                                                ).items()}


def _young() -> Arrays:
    """Nothing has moved far: all blocks look alike."""
    return _drawn(planted.stack(6), "h.") | {"h.1.mlp.up.bias": np.full(128, 1e-4, "<f4")}


def _half_frozen() -> Arrays:
    """The lower half of the blocks keeps random keys on purpose."""
    return _drawn(planted.stack(6), "h.0.attn.k", "h.1.attn.k", "h.2.attn.k")


def _even_but_trained() -> Arrays:
    """A matrix with rows of one norm as normalisation of weights makes them, whose bias has moved."""
    arrays = planted.stack(6, 48)
    weight = arrays["h.3.mlp.up.weight"]
    arrays["h.3.mlp.up.weight"] = (weight / np.linalg.norm(weight, axis=1, keepdims=True) * 0.2).astype("<f4")
    return arrays


@pytest.mark.parametrize("sound", [planted.stack, planted.convolutions, _experts, _adapters, _young, _half_frozen,
                                   _even_but_trained])
def test_what_looks_like_it(sound: Callable[[], Arrays], tmp_path: Path) -> None:
    assert _told(planted.write("npz", tmp_path, sound()), ("W150",)) == []


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_no_numbers(value: float, tmp_path: Path) -> None:
    arrays = _drawn(_trained(), "h.2.mlp.")
    arrays["h.3.mlp.up.weight"][1, 2] = value
    path = planted.write("npz", tmp_path, arrays)
    assert [f.measured["tensors"] for f in _told(path, ("W150",))] == [("h.2.mlp.down.weight",)]
