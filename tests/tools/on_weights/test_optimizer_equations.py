"""Moments that break the equations of their optimizer, in every form that files keep them in; sound ones are not told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import redundancy_planting as planting
import weight_planting as planted

from traindx_tools.errors import UnreadableInput
from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import examine
from traindx_tools.on_weights.moment_names import moment_named

torch = pytest.importorskip("torch")


State = dict[int, dict[str, Any]]
FLAT: Mapping[str, Callable[[str, str], str]] = {
    "optimizer before": lambda n, k: f"optimizer.{k}.{n}", "bare before": lambda n, k: f"{k}.{n}",
    "behind": lambda n, k: f"optimizer.state.{n}.{k}",
    "short": lambda n, k: f"adam/{'m' if k == 'exp_avg' else 'v'}/{n}",
}


def _changed(state: Mapping[str, Any], change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    kept = {k: dict(v) for k, v in state["state"].items()}
    for one in kept.values():
        change(one)
    return {"state": kept, "param_groups": state["param_groups"]}


def _told(path: Path) -> list[Finding]:
    report = examine(path)
    assert not report.notes
    return [f for f in report.findings if f.severity is not Severity.INFO]


def _kinds(path: Path) -> list[tuple[str, object]]:
    return [(f.rule, f.measured["kind"]) for f in _told(path)]


def _half(one: dict[str, Any]) -> None:
    one["exp_avg_sq"] = one["exp_avg_sq"].half().float()


def _stored_half(one: dict[str, Any]) -> None:
    one["exp_avg"], one["exp_avg_sq"] = one["exp_avg"].half(), one["exp_avg_sq"].half()


def _clamped(one: dict[str, Any]) -> None:
    one["exp_avg_sq"] = one["exp_avg_sq"].clamp(min=2.0**-24)


@pytest.mark.parametrize("alone", [False, True], ids=["beside the weights", "alone"])
@pytest.mark.parametrize(("change", "kind"), [(_half, "underflow"), (_stored_half, "underflow"), (_clamped, "cut"),
                                              (lambda one: None, None)])
def test_squares_that_were_cut(change: Callable[[dict[str, Any]], None], kind: str | None,
                               alone: bool, tmp_path: Path) -> None:
    weights, state = planting.residual()
    changed = _changed(state, change)
    torch.save(changed if alone else {"model": weights, "optimizer": changed}, tmp_path / "c.pt")
    assert _kinds(tmp_path / "c.pt") == ([("W124", kind)] if kind else [])


@pytest.mark.parametrize("form", ["safetensors", "npz", "sharded"])
@pytest.mark.parametrize("names", FLAT)
@pytest.mark.parametrize("faulty", [False, True])
def test_moments_of_a_flat_file(names: str, form: str, faulty: bool, tmp_path: Path) -> None:
    weights, state = planting.residual()
    changed = _changed(state, _half if faulty else lambda one: None)["state"]
    flat = {FLAT[names](n, kind): changed[at][kind].numpy() for at, n in enumerate(weights)
            for kind in ("exp_avg", "exp_avg_sq")}
    path = planted.write(form, tmp_path, {n: t.numpy() for n, t in weights.items()} | flat)
    assert _kinds(path) == ([("W124", "underflow")] if faulty else [])
    assert sorted(t for t in examine(path).checkpoint.weights.tensors) == sorted(weights)


def test_a_larger_eps_bears_half_precision(tmp_path: Path) -> None:
    weights, state = planting.residual()
    changed = _changed(state, _stored_half)
    changed["param_groups"] = [{**g, "eps": 1e-4} for g in changed["param_groups"]]
    torch.save({"model": weights, "optimizer": changed}, tmp_path / "c.pt")
    assert _kinds(tmp_path / "c.pt") == []


@pytest.mark.parametrize(("name", "extra", "large", "factor"), [
    ("AdamW", "amsgrad", "max_exp_avg_sq", 0.5), ("RMSprop", "centered", "square_avg", 1e-3)])
def test_what_is_never_above_the_other(name: str, extra: str, large: str, factor: float, tmp_path: Path) -> None:
    weights, state = planting.residual(name, **{extra: True})
    torch.save({"model": weights, "optimizer": state}, tmp_path / "sound.pt")
    assert _kinds(tmp_path / "sound.pt") == []

    def older(one: dict[str, Any]) -> None:
        one[large] = one[large] * factor

    torch.save({"model": weights, "optimizer": _changed(state, older)}, tmp_path / "older.pt")
    assert ("W124", "above") in _kinds(tmp_path / "older.pt")


def test_names_of_moments() -> None:
    assert moment_named("blocks.0.v.weight") is None
    assert moment_named("vae.mu.weight") is None
    for name in ("optimizer.state.blocks.0.v.weight.exp_avg_sq", "adam.v.blocks.0.v.weight", "opt/blocks/0/v/weight/v",
                 "exp_avg_sq.blocks.0.v.weight"):
        named = moment_named(name)
        assert named is not None
        assert named.weight == "blocks.0.v.weight"
        assert named.kind in ("exp_avg_sq", "v")


def test_a_module_called_like_moments_is_left_with_the_weights(tmp_path: Path) -> None:
    """A mean and a scale of a latent, without an optimizer's name, and one moment without the other."""
    arrays = planted.stack(4, 16, vocab=40)
    arrays |= {"latent.mu.weight": arrays["h.0.attn.q.weight"] + 1, "latent.nu.weight": arrays["h.1.attn.q.weight"] + 1,
               "optimizer.m.q": arrays["h.0.attn.q.weight"]}
    assert set(arrays) == set(examine(planted.write("npz", tmp_path, arrays)).checkpoint.weights.tensors)


def test_a_file_of_an_optimizer_that_was_cut_short(tmp_path: Path) -> None:
    torch.save(planting.residual()[1], tmp_path / "optimizer.pt")
    data = (tmp_path / "optimizer.pt").read_bytes()
    (tmp_path / "optimizer.pt").write_bytes(data[: len(data) // 2])
    with pytest.raises(UnreadableInput, match=r"optimizer\.pt"):
        examine(tmp_path / "optimizer.pt")
