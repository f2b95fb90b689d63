"""Which parameters cannot receive a gradient, told from the jaxpr alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
from jax import lax

from traindx_tools.on_jax.paths.gradient import gradient_paths

P = {"enc": jnp.ones((4, 3)), "dec": jnp.ones((3, 4))}
X = jnp.ones((5, 4))
TEXT = Path(__file__).read_text(encoding="utf-8").splitlines()


def line(mark: str) -> int:
    return next(i for i, text in enumerate(TEXT, 1) if text.endswith(f"# <- {mark}"))


def stopped(p: Any, x: Any) -> Any:
    z = x @ p["enc"]
    q = lax.stop_gradient(z + (jnp.round(z) - z))  # <- stopped
    return ((q @ p["dec"] - x) ** 2).mean()


def rounded(p: Any, x: Any) -> Any:
    z = jnp.round(x @ p["enc"] * 7) / 7  # <- rounded
    return ((z @ p["dec"] - x) ** 2).mean()


def chosen(p: Any, x: Any) -> Any:
    codes = jnp.argmax(x @ p["enc"], axis=-1)  # <- chosen
    return ((p["dec"][codes] - x) ** 2).mean()


def cast(p: Any, x: Any) -> Any:
    levels = (x @ p["enc"]).astype(jnp.int32)  # <- cast
    return ((levels.astype(jnp.float32) @ p["dec"] - x) ** 2).mean()


def in_scan(p: Any, x: Any) -> Any:
    def body(h: Any, row: Any) -> tuple[Any, None]:
        return h + jnp.sign(row @ p["enc"]), None  # <- in_scan

    return (lax.scan(body, jnp.zeros(3), x)[0] @ p["dec"]).sum()


@pytest.mark.parametrize("loss", [stopped, rounded, chosen, cast, in_scan], ids=lambda f: f.__name__)
def test_the_cut_is_named_with_its_line(loss: Callable[..., Any]) -> None:
    found = gradient_paths(loss, P, X)
    assert [f.rule for f in found] == ["J301"]
    assert found[0].measured["parameters"] == ("p['enc']",)
    assert found[0].where.line == line(loss.__name__)


def test_a_parameter_that_is_not_used_is_told() -> None:
    found = gradient_paths(lambda p, x: (x @ p["enc"]).sum(), P, X)
    assert [(f.rule, f.measured["kind"], f.measured["parameters"]) for f in found] == [
        ("J301", "disconnected", ("p['dec']",))]


def test_a_parameter_of_one_branch_is_remarked() -> None:
    def loss(p: Any, x: Any) -> Any:
        h = lax.cond(x.sum() > 0, lambda: x @ p["enc"], lambda: jnp.zeros((5, 3)))
        return (h @ p["dec"]).sum()

    found = gradient_paths(jax.jit(loss), P, X)
    assert [(f.rule, f.severity.value, f.measured["parameters"]) for f in found] == [("J302", "info", ("p['enc']",))]


def straight_through(p: Any, x: Any) -> Any:
    z = x @ p["enc"]
    return (((z + lax.stop_gradient(jnp.round(z) - z)) @ p["dec"] - x) ** 2).mean()


def masked(p: Any, x: Any) -> Any:
    z = jax.nn.relu(x @ p["enc"])
    return (jnp.where(z > 0.5, z, 0.0) @ p["dec"]).mean()


@jax.custom_vjp
def own_rounding(x: Any) -> Any:
    return jnp.round(x)


own_rounding.defvjp(lambda x: (jnp.round(x), None), lambda _, g: (g,))


def with_own_derivative(p: Any, x: Any) -> Any:
    return (own_rounding(x @ p["enc"]) @ p["dec"]).sum()


def carried(p: Any, x: Any) -> Any:
    def body(h: Any, row: Any) -> tuple[Any, None]:
        return jnp.tanh(h + row @ p["enc"]), None

    return (lax.scan(body, jnp.zeros(3), x)[0] @ p["dec"]).sum()


def in_both_branches(p: Any, x: Any) -> Any:
    h = lax.cond(x.sum() > 0, lambda w: x @ w, lambda w: -x @ w, p["enc"])
    return (h @ p["dec"]).sum()


@pytest.mark.slow
@pytest.mark.parametrize("loss", [straight_through, masked, with_own_derivative, carried, in_both_branches],
                         ids=lambda f: f.__name__)
def test_losses_that_train_everything_are_silent(loss: Callable[..., Any]) -> None:
    assert gradient_paths(loss, P, X) == []
    assert all(float(jnp.abs(g).sum()) >= 0 for g in jax.tree_util.tree_leaves(jax.grad(loss)(P, X)))


@pytest.mark.slow
def test_a_flax_network_is_silent() -> None:
    pytest.importorskip("flax")
    from flax import linen

    net = linen.Sequential([linen.Dense(8), jax.nn.gelu, linen.LayerNorm(), linen.Dense(2)])
    params = net.init(jax.random.key(0), X)
    assert gradient_paths(lambda p, x: (net.apply(p, x) ** 2).mean(), params, X) == []


def stopped_behind_a_softmax(p: Any, x: Any) -> Any:
    weights = jax.nn.softmax(x @ p["enc"])
    weights = lax.stop_gradient(weights)  # <- stopped-behind
    return ((weights @ p["dec"] - x) ** 2).mean()


def test_what_jax_stops_by_itself_is_not_blamed() -> None:
    (finding,) = gradient_paths(stopped_behind_a_softmax, P, X)
    assert (finding.rule, finding.where.line) == ("J301", line("stopped-behind"))
