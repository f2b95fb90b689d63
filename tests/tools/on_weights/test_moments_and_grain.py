"""Moments that no gradients can have made, and values that passed through a narrower type; what is design is not told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from weight_planting import stack, write_npz

from traindx_tools.finding import Severity
from traindx_tools.on_weights import examine
from traindx_tools.on_weights.grain import on_steps
from traindx_tools.on_weights.rules.w124_moments import bound

torch = pytest.importorskip("torch")
nn = torch.nn
Checkpoint = dict[str, Any]


@pytest.fixture(scope="module")
def trained() -> Callable[[], Checkpoint]:
    """A small model after forty steps of Adam: gradients of its layers are of other scales."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(32, 32), nn.Tanh()) for _ in range(5)), nn.Linear(32, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(40):
        optimizer.zero_grad()
        (model(torch.randn(16, 32)) - 1).pow(2).mean().mul(1e-2).backward()
        optimizer.step()

    def made() -> Checkpoint:
        import copy

        return copy.deepcopy({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "global_step": 40})

    return made


def _states(c: Checkpoint) -> list[dict[str, Any]]:
    return list(c["optimizer"]["state"].values())


def _through_half(c: Checkpoint) -> None:
    for state in _states(c):
        state["exp_avg_sq"] = state["exp_avg_sq"].half().float()


def _zeroed(c: Checkpoint) -> None:
    _states(c)[2]["exp_avg_sq"][:8] = 0


def _squares_scaled(c: Checkpoint) -> None:
    for state in _states(c)[:3]:
        state["exp_avg_sq"] *= 1e-6


def _unscaled_once(c: Checkpoint) -> None:
    for state in _states(c):
        state["exp_avg"] *= 65536.0


def _one_through_bfloat16(c: Checkpoint) -> None:
    _states(c)[4]["exp_avg"] = _states(c)[4]["exp_avg"].bfloat16().float()


def _kinds(folder: Path, checkpoint: Checkpoint, rule: str = "W124") -> list[str]:
    torch.save(checkpoint, folder / "c.pt")
    seen = examine(folder / "c.pt")
    assert not [n for n in seen.notes if "failed" in n]
    return [f.measured["kind"] for f in seen.findings if f.rule == rule and f.severity is not Severity.INFO]


@pytest.mark.parametrize(("fault", "kinds"), [
    (_through_half, {"underflow"}), (_zeroed, {"underflow"}), (_squares_scaled, {"too-small"}),
    (_unscaled_once, {"too-small"}), (_one_through_bfloat16, {"grain"}),
])  # fmt: skip
def test_moments_that_are_not_those_of_gradients(fault: Callable[[Checkpoint], None], kinds: set[str], tmp_path: Path,
                                                 trained: Callable[[], Checkpoint]) -> None:
    made = trained()
    fault(made)
    found = set(_kinds(tmp_path, made))
    assert kinds == found


def _all_in_bfloat16(c: Checkpoint) -> None:
    for state in _states(c):
        for name in ("exp_avg", "exp_avg_sq"):
            state[name] = state[name].bfloat16().float()


def _fresh(c: Checkpoint) -> None:
    for state in _states(c):
        gradient = torch.randn_like(state["exp_avg"]) * 1e-3
        state |= {"step": torch.tensor(1.0), "exp_avg": 0.1 * gradient, "exp_avg_sq": 0.001 * gradient**2}


def _without_gradient(c: Checkpoint) -> None:
    _states(c)[0]["exp_avg"][:9] = 0
    _states(c)[0]["exp_avg_sq"][:9] = 0


def _denormal(c: Checkpoint) -> None:
    _states(c)[0]["exp_avg"][:9] = 1e-25
    _states(c)[0]["exp_avg_sq"][:9] = 0


def _of_rotated_space(c: Checkpoint) -> None:
    """An optimizer that keeps its squares in another basis, and says so by what else it keeps."""
    for state in _states(c):
        state["exp_avg"] *= 1e3
        state["GG"] = torch.randn(4, 4)


@pytest.mark.parametrize("design", [lambda c: None, _all_in_bfloat16, _fresh, _without_gradient, _denormal,
                                    _of_rotated_space])
def test_moments_that_are_left_alone(design: Callable[[Checkpoint], None], tmp_path: Path,
                                     trained: Callable[[], Checkpoint]) -> None:
    made = trained()
    design(made)
    assert _kinds(tmp_path, made) == []


def test_no_gradients_exceed_the_bound() -> None:
    rng = np.random.default_rng(0)
    most = 0.0
    for _ in range(200):
        gradients, m, v = rng.standard_normal(300) * rng.lognormal(0, 3, 300), 0.0, 0.0
        for g in gradients:
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        most = max(most, m * m / v)
    m = v = 0.0
    for k in range(300, 0, -1):  # the gradients that reach it
        g = (0.9 / 0.999) ** k
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    assert most < bound(0.9, 0.999) == pytest.approx(52.9, abs=0.1)
    assert m * m / v == pytest.approx(bound(0.9, 0.999), rel=0.01)
    assert bound(0.99, 0.9) == np.inf


def test_moments_of_a_tree(tmp_path: Path) -> None:
    """optax under the path of the weight: zeros beside a mean, and a negative mean of squares."""
    serialization = pytest.importorskip("flax.serialization")
    rng = np.random.default_rng(0)
    shape = (16, 32)
    params = {f"layer_{i}": {"kernel": rng.standard_normal(shape).astype(np.float32)} for i in range(5)}
    mu = {n: {"kernel": rng.standard_normal(shape).astype(np.float32) * 1e-3} for n in params}
    nu = {n: {"kernel": (v["kernel"] ** 2 * 0.5).astype(np.float32)} for n, v in mu.items()}

    def kinds(squares: Mapping[str, Any]) -> list[str]:
        tree = {"params": params, "opt_state": {"0": {"mu": mu, "nu": squares}}}
        (tmp_path / "c.msgpack").write_bytes(serialization.msgpack_serialize(tree))
        return [f.measured["kind"] for f in examine(tmp_path / "c.msgpack").findings if f.rule == "W124"]

    assert kinds(nu) == []
    assert kinds(nu | {"layer_2": {"kernel": np.where(rng.random(shape) < 0.4, 0, nu["layer_2"]["kernel"])}}
                 ) == ["underflow"]
    assert kinds(nu | {"layer_2": {"kernel": -nu["layer_2"]["kernel"]}}) == ["negative"]


def _in_steps(w: Any, by_row: bool = True) -> Any:
    scale = np.abs(w).max(1 if by_row else None, keepdims=True) / 127
    return (np.round(w / scale) * scale).astype(w.dtype)


def _half_double(w: Any) -> Any:
    return w.astype(np.float32).astype(w.dtype)


def _grain(folder: Path, arrays: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = examine(write_npz(folder / "a.npz", arrays)).findings
    return [(f.measured["name"], f.measured["type"]) for f in found
            if f.rule == "W109" and f.severity is not Severity.INFO]


@pytest.mark.parametrize(("name", "change", "grain"), [
    ("h.3.mlp.up.weight", _in_steps, "steps"), ("h.3.mlp.up.weight", lambda w: _in_steps(w, False), "steps"),
    ("h.5.attn.q.weight", lambda w: w.astype(np.float16).astype(w.dtype), "float16"),
    ("norm_out.weight", lambda w: w.astype(np.float16).astype(w.dtype), "float16"),
])  # fmt: skip
def test_what_passed_through_a_narrower_type(name: str, change: Callable[[Any], Any], grain: str,
                                             tmp_path: Path) -> None:
    a = stack()
    a["norm_out.weight"] = a["head.weight"][:64].copy()
    a[name] = change(a[name])
    assert _grain(tmp_path, a) == [(name, grain)]


def test_one_tensor_of_double_precision_that_was_single(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a = {n: v + rng.standard_normal(v.shape) * 1e-12 for n, v in stack().items()}
    a["h.2.attn.v.weight"] = _half_double(a["h.2.attn.v.weight"])
    assert _grain(tmp_path, a) == [("h.2.attn.v.weight", "float32")]


def _grid(a: dict[str, Any]) -> None:
    a["places"] = np.stack(np.meshgrid(np.linspace(-1, 1, 64), np.linspace(-1, 1, 64))).reshape(2, -1).T.astype("f4")
    a["counts"] = np.arange(4096, dtype=np.float32).reshape(64, 64) % 300


@pytest.mark.parametrize("design", [
    lambda a: None, _grid, lambda a: a.update({n: _in_steps(v) for n, v in a.items() if v.ndim == 2}),
    lambda a: a.update({n: v.astype(np.float16).astype(np.float32) for n, v in a.items()}),
    lambda a: a.update({"wte.weight": a["wte.weight"].astype(np.float16).astype(np.float32)}),
])  # fmt: skip
def test_values_that_are_narrow_by_design(design: Callable[[dict[str, Any]], None], tmp_path: Path) -> None:
    a = stack()
    design(a)
    assert _grain(tmp_path, a) == []


def test_steps_are_told_from_chance() -> None:
    rng = np.random.default_rng(0)
    assert not any(on_steps(np.abs(rng.standard_normal(64))) for _ in range(50))
    assert all(on_steps(np.unique(np.abs(np.round(rng.standard_normal(200) * 40))[:])[1:] * s * 1.0000001)
               for s in (0.003, 0.1))
    assert not on_steps(np.zeros(0) + 1.0)
