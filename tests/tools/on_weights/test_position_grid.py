"""Learned positions of another grid than the model's; sound ones, and tables that have no grid."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redundancy_planting as planting
import weight_planting as planted

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import examine
from traindx_tools.on_weights.position_grid import lines_of, straightened

torch = pytest.importorskip("torch")




def _told(folder: Path, weights: Mapping[str, Any], form: str = "torch", config: Any = None) -> list[Finding]:
    path = planted.write(form, folder, {n: t.numpy() for n, t in weights.items()})
    if config is not None:
        (path.parent / "config.json").write_text(json.dumps(config))
    report = examine(path)
    assert not [n for n in report.notes if "failed" in n]
    return [f for f in report.findings if f.rule == "W135" and f.severity is not Severity.INFO]


@pytest.mark.parametrize("form", ["torch", "safetensors", "npz", "sharded"])
@pytest.mark.parametrize(("to", "kind"), [((12, 12), "sequence"), ((10, 10), "sequence"), ((6, 6), "grid")])
def test_a_table_that_was_resized_along_the_sequence(to: tuple[int, int], kind: str, form: str, tmp_path: Path) -> None:
    (finding,) = _told(tmp_path, planting.resized(planting.patches(), to, flat=True), form)
    assert finding.measured["kind"] == kind
    assert finding.measured["wanted"] == to[1]
    assert finding.severity is (Severity.HIGH if kind == "sequence" else Severity.MEDIUM)
    assert kind != "sequence" or "8 x 8" in finding.statement


@pytest.mark.parametrize("config", [None, {"image_size": 24, "patch_size": 2}])
@pytest.mark.parametrize(("to", "mode"), [((8, 8), "bilinear"), ((12, 12), "bicubic"), ((12, 12), "nearest"),
                                          ((6, 6), "bilinear"), ((16, 16), "bicubic")])
def test_a_table_that_was_resized_in_two_directions(to: tuple[int, int], mode: str, config: Any, tmp_path: Path
                                                    ) -> None:
    assert _told(tmp_path, planting.resized(planting.patches(), to, flat=False, mode=mode), config=config) == []


def test_after_some_training(tmp_path: Path) -> None:
    """Nothing is exact any more, and a square of lines that fit a rectangle needs the configuration."""
    weights = planting.resized(planting.patches(), (12, 12), flat=True)
    table = weights["pos_embed"]
    noise = 0.3 * table.std() * torch.randn(table.shape, generator=torch.Generator().manual_seed(0))
    weights = {**weights, "pos_embed": table + noise}
    (tmp_path / "told").mkdir()
    assert _told(tmp_path, weights) == []
    config = {"vision_config": {"image_size": 24, "patch_size": 2}}
    (finding,) = _told(tmp_path / "told", weights, "safetensors", config)
    assert finding.measured["kind"] == "grid"


def test_sides_exchanged(tmp_path: Path) -> None:
    """A grid of 4 x 9 where the configuration has 9 x 4; without one nothing is told."""
    weights = planting.patches((4, 9))
    assert _told(tmp_path, weights) == []
    for name, size, count in (("sound", [8, 18], 0), ("other", [18, 8], 1)):
        (tmp_path / name).mkdir()
        assert len(_told(tmp_path / name, weights, "npz", {"image_size": size, "patch_size": 2})) == count


@pytest.mark.parametrize("shape", ["two axes", "three axes"])
def test_a_grid_that_keeps_its_axes(shape: str, tmp_path: Path) -> None:
    weights = planting.resized(planting.patches(), (12, 12), flat=True)
    table = weights["pos_embed"][:, 1:]
    laid = table.reshape(12, 12, -1) if shape == "three axes" else table[0]
    assert len(_told(tmp_path, {**weights, "pos_embed": laid})) == 1


def _text() -> Any:
    """Waves of few long periods and noise, as positions of text have."""
    at = np.arange(1024)[:, None] / np.array([[1024, 512, 300, 150, 90, 61]])
    generator = np.random.default_rng(0)
    waves = np.concatenate([np.sin(2 * np.pi * at), np.cos(2 * np.pi * at)], 1) @ generator.standard_normal((12, 64))
    return torch.tensor(waves + 0.3 * generator.standard_normal(waves.shape), dtype=torch.float32)


@pytest.mark.parametrize("table", [
    lambda: _text()[None], lambda: torch.randn(1, 65, 64, generator=torch.Generator().manual_seed(1)) * 0.02,
    lambda: torch.zeros(1, 65, 64), lambda: torch.full((1, 65, 64), torch.nan), lambda: torch.ones(1, 2, 64)],
    ids=["text", "fresh", "zeros", "nan", "short"])
def test_tables_without_a_grid(table: Any, tmp_path: Path) -> None:
    weights = {**planting.patches(), "pos_embed": table()}
    text = {n: t for n, t in weights.items() if n != "patch_embed.weight"}
    assert _told(tmp_path, text) == []
    if table().shape[1] != 1024:
        assert _told(tmp_path, weights) == []


@pytest.mark.parametrize("config", [{"image_size": "x"}, {"image_size": [0, -1]}, {"image_size": 24, "patch_size": 0},
                                    {"image_size": {"a": []}}, []])
def test_a_configuration_that_says_nothing(config: Any, tmp_path: Path) -> None:
    assert len(_told(tmp_path, planting.resized(planting.patches(), (12, 12), flat=True), config=config)) == 1


def test_patches_of_a_linear_layer(tmp_path: Path) -> None:
    """No kernel says that there are patches: what was interpolated says it by itself."""
    weights = planting.patches()
    weights = {**weights, "patch_embed.weight": weights["patch_embed.weight"].flatten(1)}
    for name, flat in (("sound", False), ("other", True)):
        for word in ("embed", "patch_embed"):
            (tmp_path / f"{name} {word}").mkdir()
            renamed = {n.replace("patch_embed", word): t for n, t in
                       planting.resized(weights, (12, 12), flat=flat).items()}
            assert len(_told(tmp_path / f"{name} {word}", renamed)) == flat


def test_interpolation_is_told_from_what_is_not() -> None:
    rng = np.random.default_rng(0)
    old = rng.standard_normal((16, 20))
    new = np.stack([np.interp(np.linspace(0, 15, 40), np.arange(16), column) for column in old.T], 1)
    assert straightened(new, 16)
    assert not straightened(new, 25)
    assert not straightened(rng.standard_normal((40, 20)), 16)
    assert not straightened(new, 40)
    assert lines_of(np.zeros((64, 4)), 8) is None
    assert lines_of(np.full((64, 4), np.inf), 8) is None
