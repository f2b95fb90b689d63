"""Weights of half precision beside float32 copies: most are the copies rounded, some are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import redundancy_planting as planting

from traindx_tools.on_weights import examine

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")


HALF = {"bfloat16": torch.bfloat16, "float16": torch.float16}


def _half(weights: Mapping[str, Any], dtype: str, stale: Sequence[str]) -> dict[str, Any]:
    """Rounded; those that are called so are of some steps ago."""
    return {n: (t * 0.99 if n.startswith(tuple(stale)) and stale else t).to(HALF[dtype]) for n, t in weights.items()}


def _told(path: Path) -> list[Any]:
    report = examine(path)
    assert not [n for n in report.notes if "failed" in n]
    return [f for f in report.findings if f.rule == "W137"]


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("stale", [("blocks.1.v",), ()])
@pytest.mark.parametrize("form", ["parts", "safetensors", "state"])
def test_copies_that_differ(form: str, stale: Sequence[str], dtype: str, tmp_path: Path) -> None:
    weights, optimizer = planting.residual()
    half = _half(weights, dtype, stale)
    path = tmp_path / ("c.safetensors" if form == "safetensors" else "c.pt")
    if form == "parts":
        torch.save({"model": half, "fp32_master": dict(weights)}, path)
    elif form == "safetensors":
        safetensors.save_file(half | {f"master_weights.{n}": t for n, t in weights.items()}, path)
    else:
        state = {k: {**s, "master_param": list(weights.values())[k]} for k, s in optimizer["state"].items()}
        torch.save({"model": half, "optimizer": {**optimizer, "state": state}}, path)
    found = _told(path)
    assert len(found) == bool(stale)
    assert all(set(f.measured["names"]) == {"blocks.1.v.weight", "blocks.1.v.bias"} for f in found)


@pytest.mark.parametrize("design", ["average", "step before", "moments", "other shapes", "one type"])
def test_copies_that_are_none(design: str, tmp_path: Path) -> None:
    weights, optimizer = planting.residual()
    half = _half(weights, "bfloat16", ())
    beside: dict[str, Any] = {}
    if design == "average":  # of a model most of which is frozen
        beside["ema_model"] = {n: t * (0.99 if n.startswith("head") else 1) for n, t in weights.items()}
    elif design == "step before":
        beside["master"] = {n: t * 0.999 for n, t in weights.items()}
    elif design == "moments":
        beside["optimizer"] = optimizer
    elif design == "other shapes":
        beside["master"] = {n: t.repeat(2) if t.ndim == 1 else t.repeat(2, 1) for n, t in weights.items()}
    else:
        half = weights
        beside["master"] = {n: t * 0.99 for n, t in weights.items()}
    torch.save({"model": half, **beside}, tmp_path / "c.pt")
    assert _told(tmp_path / "c.pt") == []


def test_copies_that_stand_first(tmp_path: Path) -> None:
    weights, _ = planting.residual()
    torch.save({"master": dict(weights), "model": _half(weights, "bfloat16", ("blocks.1.v",))}, tmp_path / "c.pt")
    assert len(_told(tmp_path / "c.pt")) == 1


def test_copies_that_are_not_finite(tmp_path: Path) -> None:
    weights, _ = planting.residual()
    torch.save({"model": _half(weights, "float16", ()), "master": {n: t * torch.nan for n, t in weights.items()}},
               tmp_path / "c.pt")
    assert _told(tmp_path / "c.pt") == []
