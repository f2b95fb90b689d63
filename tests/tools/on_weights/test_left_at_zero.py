"""Adapters and branches that begin at zero: some left there, all before training, layers left out on purpose."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import redundancy_planting as planting
import weight_planting as planted

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import examine

torch = pytest.importorskip("torch")




def _told(folder: Path, tensors: Mapping[str, Any], form: str = "torch", config: Any = None) -> list[Finding]:
    path = planted.write(form, folder, {n: t.numpy() for n, t in tensors.items()}, "adapter_model")
    if config is not None:
        (path.parent / "adapter_config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    report = examine(path)
    assert not report.notes
    return [f for f in report.findings if f.severity is not Severity.INFO]


def _without(tensors: Mapping[str, Any], *blocks: int) -> dict[str, Any]:
    return {n: t for n, t in tensors.items() if not any(f".blocks.{b}." in n for b in blocks)}


@pytest.mark.parametrize("form", ["torch", "safetensors", "npz", "sharded"])
@pytest.mark.parametrize(("still", "count"), [
    (("blocks.3",), 2), (("blocks.4", "blocks.5", "blocks.6", "blocks.7"), 8), (("blocks.2.v", "blocks.6.v"), 2)])
def test_adapters_that_were_not_trained(still: tuple[str, ...], count: int, form: str, tmp_path: Path) -> None:
    (finding,) = _told(tmp_path, planting.adapter(still), form)
    assert finding.rule == "W133"
    assert finding.measured["count"] == count
    assert still[0] in finding.statement


def test_three_layers_are_enough(tmp_path: Path) -> None:
    (finding,) = _told(tmp_path, planting.adapter(("blocks.1",), 30, 3))
    assert finding.rule == "W133"


def test_the_last_layer_may_lie_behind_the_output(tmp_path: Path) -> None:
    (finding,) = _told(tmp_path, planting.adapter(("blocks.7",)))
    assert finding.severity is Severity.MEDIUM


@pytest.mark.parametrize("form", ["torch", "safetensors"])
def test_adapters_that_are_sound(form: str, tmp_path: Path) -> None:
    for at, tensors in enumerate((planting.adapter(), planting.adapter((), 0), _without(planting.adapter(), 0, 1, 2))):
        (tmp_path / str(at)).mkdir()
        assert _told(tmp_path / str(at), tensors, form) == []


def test_a_component_that_is_not_adapted(tmp_path: Path) -> None:
    fresh = {n.replace("base_model.model", "text_encoder"): t for n, t in planting.adapter((), 0).items()}
    assert _told(tmp_path, planting.adapter() | fresh) == []


def test_one_kind_of_module_without_gradient(tmp_path: Path) -> None:
    still = tuple(f"blocks.{k}.v" for k in range(8))
    (finding,) = _told(tmp_path, planting.adapter(still))
    assert finding.measured["kind"] == "kind"
    assert finding.severity is Severity.MEDIUM


@pytest.mark.parametrize(("lost", "config", "kind"), [
    ((5,), {"layers_to_transform": None, "r": 4}, "gap"), ((5,), {"layers_to_transform": list(range(8))}, "absent"),
    ((7,), {"layers_to_transform": list(range(8))}, "absent"),
    ((2, 5), {"layers_to_transform": [0, 1, 3, 4, 6, 7]}, None), ((0, 1), {"layers_to_transform": None}, None),
    ((1, 3, 5), {"r": 4}, None), ((), {"layers_to_transform": "x", "r": []}, None), ((), "{", None),
    ((), "[1]", None),
])
def test_layers_that_are_not_there(lost: tuple[int, ...], config: Any, kind: str | None, tmp_path: Path) -> None:
    found = _told(tmp_path, _without(planting.adapter(), *lost), "safetensors", config)
    assert [f.measured["kind"] for f in found] == ([kind] if kind else [])


@pytest.mark.parametrize("form", ["torch", "npz"])
@pytest.mark.parametrize("scalar", [True, False], ids=["gate", "projection"])
@pytest.mark.parametrize(("still", "told"), [((), False), ((1, 3, 5), True), (tuple(range(6)), False)])
def test_branches_behind_a_zero(still: tuple[int, ...], told: bool, scalar: bool, form: str, tmp_path: Path) -> None:
    found = _told(tmp_path, planting.gated(still, scalar=scalar), form)
    assert [(f.rule, f.measured["count"]) for f in found] == ([("W133", 3)] if told else [])


def test_one_branch_is_told_once(tmp_path: Path) -> None:
    assert [f.rule for f in _told(tmp_path, planting.gated((2,)))] == ["W104"]


def test_copied_blocks_that_begin_as_identity(tmp_path: Path) -> None:
    """Every second block is the one before it with a last projection of zero."""
    weights = planting.gated(scalar=False)
    deeper = {}
    for name, value in weights.items():
        if not name.startswith("blocks."):
            deeper[name] = value
            continue
        _, number, rest = name.split(".", 2)
        deeper[f"blocks.{2 * int(number)}.{rest}"] = value
        deeper[f"blocks.{2 * int(number) + 1}.{rest}"] = value * 0 if rest.startswith("down") else value.clone()
    assert not [f for f in _told(tmp_path, deeper) if f.rule == "W133"]
