"""Scales along the wrong axis of square matrices: by the codes, by scales against codes, by the matrix before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redundancy_planting as planting
import weight_planting as planted

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import examine

torch = pytest.importorskip("torch")


planted._SAFE["|i1"] = "I8"
DOWN, UP = "blocks.2.down.weight", "blocks.4.up.weight"


def _told(folder: Path, tensors: Mapping[str, Any], form: str = "torch", against: Path | None = None) -> list[Finding]:
    path = planted.write(form, folder, {n: t.numpy() for n, t in tensors.items()})
    report = examine(path, against)
    assert not [n for n in report.notes if "failed" in n]
    return [f for f in report.findings if f.severity is not Severity.INFO and (against is None or f.rule == "W134")]


@pytest.mark.parametrize("column", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize(("fault", "form", "kind"), [
    ("", "torch", None), ("", "safetensors", None), ("codes", "npz", "codes"), ("codes", "sharded", "codes"),
    ("scales", "safetensors", "scales"), ("divided", "torch", "scales")])
def test_one_matrix_by_itself(fault: str, form: str, kind: str | None, column: bool, tmp_path: Path) -> None:
    found = _told(tmp_path, planting.in_eight_bits(planting.wide(), fault, (DOWN,), column), form)
    assert [(f.rule, f.measured["kind"], f.measured["name"]) for f in found] == ([("W134", kind, DOWN)] if kind else [])


@pytest.mark.parametrize("second", [True, False], ids=["second file", "beside"])
@pytest.mark.parametrize(("fault", "names"), [("", ()), ("codes", (DOWN, UP)), ("scales", (DOWN, UP)),
                                              ("divided", (UP,))])
def test_with_the_matrix_before(fault: str, names: tuple[str, ...], second: bool, tmp_path: Path) -> None:
    torch.save(planting.wide(), tmp_path / "before.pt")
    made = planting.in_eight_bits(planting.wide(), fault, names)
    found = _told(tmp_path, made, "safetensors", tmp_path / "before.pt" if second else None)
    assert [f.measured["name"] for f in found] == list(names)
    assert all("before.pt" in f.statement and f.severity is Severity.HIGH for f in found)


def test_all_scales_of_columns(tmp_path: Path) -> None:
    """No sibling is sound: the file beside says it."""
    weights = {n: w for n, w in planting.wide().items() if w.ndim < 2 or w.shape[0] == w.shape[1]}
    torch.save(weights, tmp_path / "before.pt")
    made = planting.in_eight_bits(weights, "scales", tuple(weights))
    assert {f.measured["kind"] for f in _told(tmp_path, made, "npz")} == {"scales"}


def test_another_matrix_than_the_one_before(tmp_path: Path) -> None:
    weights = planting.wide()
    torch.save(weights, tmp_path / "before.pt")
    made = planting.in_eight_bits({**weights, DOWN: weights[UP]})
    (finding,) = _told(tmp_path, made)
    assert (finding.measured["kind"], finding.measured["name"]) == ("other", DOWN)


@pytest.mark.parametrize("design", ["shaped", "mixed", "one scale", "another training", "codes alone", "clipped"])
def test_scales_that_are_sound(design: str, tmp_path: Path) -> None:
    weights = planting.wide()
    made = planting.in_eight_bits(weights, shaped=design in ("shaped", "mixed"))
    if design == "mixed":  # each says its axis by its shape
        other = planting.in_eight_bits(weights, column=True, shaped=True)
        made |= {n: t for n, t in other.items() if n.startswith(DOWN)}
    if design == "one scale":
        made = {n: t.mean() if n.endswith("_scale") else t for n, t in made.items()}
    if design == "another training":
        generator = torch.Generator().manual_seed(4)
        torch.save({n: w + 0.05 * torch.randn(w.shape, generator=generator) if w.is_floating_point() else w
                    for n, w in weights.items()}, tmp_path / "before.pt")
    if design == "codes alone":
        made = {n: t for n, t in made.items() if not n.endswith("_scale")}
    if design == "clipped":
        made |= {n: torch.clamp(t.int() * 2, -127, 127).to(torch.int8) for n, t in made.items()
                 if t.dtype == torch.int8}
    assert not [f for f in _told(tmp_path, made) if f.rule == "W134"]


@pytest.mark.parametrize("wrong", [False, True])
def test_restored_along_the_other_axis(wrong: bool, tmp_path: Path) -> None:
    made = planting.in_eight_bits(planting.wide())
    real = {}
    for name, codes in made.items():
        if f"{name}_scale" in made:
            scale = made[f"{name}_scale"]
            real[name] = codes.float() * (scale[None] if wrong and name == DOWN else scale[:, None])
        elif not name.endswith("_scale"):
            real[name] = codes
    found = _told(tmp_path, real)
    assert [(f.rule, f.measured["name"]) for f in found] == ([("W134", DOWN)] if wrong else [])


@pytest.mark.parametrize("scale", [np.nan, -1.0, 0.0, np.inf])
def test_scales_that_are_no_scales(scale: float, tmp_path: Path) -> None:
    made = planting.in_eight_bits(planting.wide(), "codes", (DOWN,))
    made = {n: torch.full_like(t, scale) if n.endswith("_scale") else t for n, t in made.items()}
    (tmp_path / "before.pt").write_bytes(b"no weights")
    assert not [f for f in _told(tmp_path, made) if f.rule == "W134"]


@pytest.mark.parametrize("design", ["lost", "of one matrix", "of all"])
def test_one_number_as_the_scale_of_all_lines(design: str, tmp_path: Path) -> None:
    """Codes of each line at the end of the range were made with a scale a line."""
    weights = planting.wide()
    made = planting.in_eight_bits(weights)
    scale = f"{DOWN}_scale"
    if design == "of one matrix":
        by = weights[DOWN].abs().max() / 127
        made |= {DOWN: torch.round(weights[DOWN] / by).to(torch.int8), scale: by.expand(len(made[scale])).clone()}
    else:
        lost = [scale] if design == "lost" else [n for n in made if n.endswith("_scale")]
        made |= {n: made[n].max().expand(len(made[n])).clone() for n in lost}
    found = [f for f in _told(tmp_path, made) if f.rule == "W134"]
    assert [(f.measured["kind"], f.measured["name"]) for f in found] == (
        [("one-number", DOWN)] if design == "lost" else [])
