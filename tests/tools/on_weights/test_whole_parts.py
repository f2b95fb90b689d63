"""Units of a layer without siblings that are there twice, and a whole block of two or three that stood still."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import examine

Tensors = dict[str, np.ndarray]


def told(rule: str, *paths: Path) -> list[Finding]:
    first, *other = map(str, paths)
    return [f for f in examine(first, *other).findings if f.rule == rule]


def saved(path: Path, tensors: Tensors) -> Path:
    np.savez(path, **tensors)  # type: ignore[arg-type]
    return path


def autoencoder(seed: int = 0) -> Tensors:
    rng = np.random.default_rng(seed)
    sizes = (64, 32, 10, 32, 64)
    out: Tensors = {}
    for name, a, b in zip(("enc1", "enc2", "dec1", "dec2"), sizes[:-1], sizes[1:], strict=True):
        out[f"{name}/kernel"] = rng.normal(size=(a, b)).astype(np.float32) / a**0.5
        out[f"{name}/bias"] = rng.normal(size=b).astype(np.float32) / 10
    return out


def doubled(tensors: Tensors, layer: str = "dec1") -> Tensors:
    half = tensors[f"{layer}/bias"].shape[0] // 2
    return {**tensors, f"{layer}/kernel": np.concatenate([tensors[f"{layer}/kernel"][:, :half]] * 2, axis=1),
            f"{layer}/bias": np.concatenate([tensors[f"{layer}/bias"][:half]] * 2)}


def test_the_slice_of_one_rank_is_there_twice(tmp_path: Path) -> None:
    (found,) = told("W117", saved(tmp_path / "weights.npz", doubled(autoencoder())))
    assert (found.severity, found.measured["name"], found.measured["count"]) == (Severity.HIGH, "dec1/kernel", 16)


def test_a_network_that_was_widened_by_copying(tmp_path: Path) -> None:
    wide = doubled(autoencoder())
    wide["dec2/kernel"] = np.concatenate([wide["dec2/kernel"][:16] / 2] * 2)  # what reads the copies is a copy too
    assert not told("W117", saved(tmp_path / "weights.npz", wide))


@pytest.mark.parametrize("change", ["bias", "healthy", "no bias", "zeros"])
def test_copies_that_nothing_shows_to_be_units(change: str, tmp_path: Path) -> None:
    tensors = doubled(autoencoder())
    if change == "bias":
        tensors["dec1/bias"] = autoencoder(1)["dec1/bias"]
    if change == "healthy":
        tensors = autoencoder()
    if change == "no bias":
        tensors.pop("dec1/bias")
    if change == "zeros":
        tensors["dec1/bias"] = np.zeros(32, np.float32)
    assert not told("W117", saved(tmp_path / "weights.npz", tensors))


def transformer(seed: int = 0) -> Tensors:
    rng = np.random.default_rng(seed)
    out: Tensors = {"embed.weight": rng.normal(size=(50, 16)).astype(np.float32)}
    for block in (0, 1):
        for name, shape in (("attn.qkv.weight", (48, 16)), ("mlp.up.weight", (32, 16)), ("mlp.down.weight", (16, 32)),
                            ("norm.weight", (16,))):
            out[f"blocks.{block}.{name}"] = rng.normal(size=shape).astype(np.float32)
    out["norm.weight"] = 1 + rng.normal(size=16).astype(np.float32) / 10
    out["head.weight"] = rng.normal(size=(50, 16)).astype(np.float32)
    return out


def moved(tensors: Tensors, still: tuple[str, ...]) -> Tensors:
    rng = np.random.default_rng(9)
    return {n: t if n.startswith(still) else (t + 0.01 * rng.normal(size=t.shape)).astype(np.float32)
            for n, t in tensors.items()}


def test_the_second_of_two_blocks_stood_still(tmp_path: Path) -> None:
    first = transformer()
    one = saved(tmp_path / "step_400.npz", first)
    two = saved(tmp_path / "step_700.npz", moved(first, ("blocks.1.",)))
    (found,) = [f for f in told("W112", one, two) if f.measured["kind"] == "block-still"]
    assert (found.severity, found.measured["block"]) == (Severity.HIGH, 1)
    assert "all 4 tensors of blocks.1" in found.statement


@pytest.mark.parametrize("still", [("blocks.0.",), ("blocks.1.", "head."), ("blocks.", "embed."), ("blocks.1.mlp.up",),
                                   ("none",), ("embed.", "blocks.0.")],
                         ids=["the first", "and the head", "all blocks", "a part", "none", "a frozen beginning"])
def test_blocks_that_may_be_frozen_on_purpose(still: tuple[str, ...], tmp_path: Path) -> None:
    first = transformer()
    one, two = (saved(tmp_path / "step_400.npz", first), saved(tmp_path / "step_700.npz", moved(first, still)))
    assert not [f for f in told("W112", one, two) if f.measured["kind"] == "block-still"]


def test_a_file_that_is_cut(tmp_path: Path) -> None:
    whole = saved(tmp_path / "weights.npz", doubled(autoencoder()))
    cut = tmp_path / "cut.npz"
    cut.write_bytes(whole.read_bytes()[:2000])
    with pytest.raises(Exception, match=r"cut|damaged|zip|read"):
        told("W117", cut)
