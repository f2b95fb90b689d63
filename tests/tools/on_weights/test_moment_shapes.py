"""Moments of another shape than their weight: both shapes, the name, and how the two were mapped (W111)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weight_planting as planted

from traindx_tools.on_weights import examine

torch = pytest.importorskip("torch")
nn = torch.nn



def _found(file: Path) -> list[Any]:
    seen = examine(file)
    assert not [n for n in seen.notes if "failed" in n]
    return [f for f in seen.findings if f.rule == "W111" and f.measured["kind"] == "shapes"]


def _made(groups: int = 1) -> dict[str, Any]:
    torch.manual_seed(0)
    model = nn.Sequential()
    for i in range(4):
        model.add_module(f"layer{i}", nn.Linear(8, 8))
    model.add_module("head", nn.Linear(8, 10))
    own = list(model.parameters())
    optimizer = torch.optim.AdamW(own if groups == 1 else [{"params": [p for p in own if p.ndim == d]} for d in (2, 1)])
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
    return {"model": dict(model.state_dict()), "optimizer": copy.deepcopy(optimizer.state_dict())}


def _grown(c: dict[str, Any]) -> None:
    c["model"]["head.weight"] = torch.randn(14, 8)


def _grown_and_one_more(c: dict[str, Any]) -> None:
    _grown(c)
    c["model"]["head.scale"] = torch.randn(3)


def _named(c: dict[str, Any]) -> None:
    _grown(c)
    c["optimizer"]["param_groups"][0]["param_names"] = [n for n in c["model"] if n != "head.scale"]


@pytest.mark.parametrize(("groups", "change", "how"), [
    (1, _grown, "by order: 9 of 10 fit their place"), (1, _grown_and_one_more, "by order: 9 of 10"),
    (2, _grown, "by shape: nothing else is left over"), (1, _named, "by the names that it keeps")])  # fmt: skip
def test_the_weight_and_both_shapes_are_named(groups: int, change: Callable[[dict[str, Any]], None], how: str,
                                              tmp_path: Path) -> None:
    made = _made(groups)
    torch.save(made, tmp_path / "sound.pt")
    assert _found(tmp_path / "sound.pt") == []
    change(made)
    torch.save(made, tmp_path / "c.pt")
    (found,) = _found(tmp_path / "c.pt")
    assert "optimizer moments of head.weight (parameter" in found.statement
    assert "are [10, 8], the weight is [14, 8]" in found.statement
    assert how in found.statement


def test_a_mapping_that_is_not_certain_names_no_weight(tmp_path: Path) -> None:
    made = _made(2)
    made["model"]["head.weight"], made["model"]["layer0.weight"] = torch.randn(14, 8), torch.randn(15, 8)
    made["optimizer"]["state"][0]["exp_avg"] = torch.ones(9, 8)
    torch.save(made, tmp_path / "c.pt")
    (found,) = _found(tmp_path / "c.pt")
    assert "of shapes that the weights lack" in found.statement
    assert "parameter" not in found.measured


def _optax(separator: str = ".") -> dict[str, Any]:
    made = {f"params.{n}": w for n, w in planted.stack(2, 16, vocab=40).items()}
    for moment in ("mu", "nu"):
        made |= {n.replace("params.", f"opt_state.0.{moment}.", 1): np.abs(w) for n, w in made.items()
                 if n.startswith("params.")}
    return {n.replace(".", separator): w for n, w in made.items()}


@pytest.mark.parametrize(("form", "separator"), [("safetensors", "."), ("npz", "/")])
def test_moments_in_a_tree(form: str, separator: str, tmp_path: Path) -> None:
    a = _optax(separator)
    assert _found(planted.write(form, tmp_path, a, "sound")) == []
    name = "opt_state.0.mu.head.weight".replace(".", separator)
    a[name] = a[name][:33]
    (found,) = _found(planted.write(form, tmp_path, a))
    assert "are [33, 16], the weight is [40, 16] (mapped by path)" in found.statement


def test_moments_that_are_projected_or_factored(tmp_path: Path) -> None:
    """Low-rank moments of every matrix, as GaLore keeps them; Adafactor's rows and columns under names of their own."""
    a = {n: w[:, :4] if n.startswith("opt_state") and w.ndim == 2 else w for n, w in _optax().items()}
    a = {n: w for n, w in a.items() if w.ndim == 2}
    assert _found(planted.write("npz", tmp_path, a, "low-rank")) == []
    b = {n: w for n, w in _optax().items() if not n.startswith("opt_state")}
    b |= {n.replace("params.", "opt_state.0.v_row.", 1): w[0] for n, w in b.items() if w.ndim == 2}
    assert _found(planted.write("npz", tmp_path, b, "factored")) == []


def test_an_optimizer_with_odd_keys_is_no_error(tmp_path: Path) -> None:
    made = _made()
    made["optimizer"]["param_groups"][0]["params"] = [*range(9), "x", 77]
    made["optimizer"]["state"]["x"] = {"exp_avg": torch.ones(2, 2, 2)}
    torch.save(made, tmp_path / "c.pt")
    assert [f.measured["kind"] for f in _found(tmp_path / "c.pt")] == ["shapes"]
