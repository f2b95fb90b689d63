"""Where ways end more than once: every end is named with its line, the one that a person would change comes first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp
from jax import lax

from traindx_tools.finding import Finding
from traindx_tools.on_jax.paths.gradient import gradient_paths
from traindx_tools.on_jax.paths.reach import reach
from traindx_tools.on_jax.tracing import trace

P = {"enc": jnp.ones((4, 3)), "out": jnp.ones((3, 3)), "codes": jnp.ones((5, 3)), "dec": jnp.ones((3, 4))}
X = jnp.ones((6, 4))
TEXT = Path(__file__).read_text(encoding="utf-8").splitlines()
Quantiser = Callable[[Any, Any], Any]
sg = lax.stop_gradient


def line(mark: str) -> int:
    return next(i for i, text in enumerate(TEXT, 1) if text.endswith(f"# <- {mark}"))


def chosen(z: Any, codes: Any) -> Any:
    distance = ((z[:, None] - codes[None]) ** 2).sum(-1)
    return codes[jnp.argmin(distance, axis=-1)]  # <- argmin


def losses(quantised: Quantiser, *, codebook: bool = True, commitment: bool = False) -> Callable[[Any, Any], Any]:
    """A loss of a vector-quantised autoencoder with this quantiser."""

    def loss(p: Any, x: Any) -> Any:
        z = jax.nn.leaky_relu(x @ p["enc"]) @ p["out"]
        q = chosen(z, p["codes"])
        total = ((jax.nn.relu(quantised(z, q) @ p["dec"]) - x) ** 2).mean()
        if codebook:
            total += ((q - sg(z)) ** 2).mean()  # <- codebook
        if commitment:
            total += ((sg(q) - z) ** 2).mean()  # <- commitment
        return total

    return loss


def forgotten(z: Any, q: Any) -> Any:
    return sg(q)  # <- forgotten


def around_the_sum(z: Any, q: Any) -> Any:
    return sg(z + (q - z))  # <- around_the_sum


def exchanged(z: Any, q: Any) -> Any:
    return q + sg(z - q)  # <- exchanged


def before(z: Any, q: Any) -> Any:
    z = sg(z)  # <- before
    return z + sg(q - z)


def plain(z: Any, q: Any) -> Any:
    return q


def estimator(z: Any, q: Any) -> Any:
    return z + sg(q - z)  # <- estimator


def in_three_terms(z: Any, q: Any) -> Any:
    return sg(q) + z - sg(z)  # <- in_three_terms


def ends(finding: Finding) -> list[tuple[str, int, str]]:
    told = finding.measured["ends"]
    assert isinstance(told, tuple)
    return [(str(op), int(str(place).rpartition(":")[2]), str(role)) for op, place, role in told]  # type: ignore[misc]


@pytest.mark.parametrize("quantised", [forgotten, around_the_sum, exchanged, before], ids=lambda f: f.__name__)
@pytest.mark.parametrize("jitted", [False, True], ids=["plain", "jitted"])
def test_the_stop_that_cuts_the_encoder_comes_before_the_choice(quantised: Quantiser, jitted: bool) -> None:
    used = jax.jit(quantised) if jitted else quantised
    (finding,) = gradient_paths(losses(used), P, X)
    assert (finding.rule, finding.measured["parameters"]) == ("J301", ("p['enc']", "p['out']"))
    assert finding.where.line == line(quantised.__name__)
    told = {(op, at) for op, at, _ in ends(finding)}
    assert {("stop_gradient", line(quantised.__name__)), ("argmin", line("argmin")),
            ("stop_gradient", line("codebook"))} <= told
    for _, at in told:
        assert f":{at}" in finding.statement
    assert ends(finding)[-1][2] != "stop"


def test_a_lookup_without_an_estimator_is_where_it_ends() -> None:
    (finding,) = gradient_paths(losses(plain), P, X)
    assert ends(finding) == [("argmin", line("argmin"), "choice"), ("stop_gradient", line("codebook"), "target")]
    assert "(as a target)" in finding.statement


@pytest.mark.parametrize("quantised", [estimator, in_three_terms], ids=lambda f: f.__name__)
def test_a_codebook_that_only_the_other_loss_could_train(quantised: Quantiser) -> None:
    (finding,) = gradient_paths(losses(quantised, codebook=False, commitment=True), P, X)
    assert finding.measured["parameters"] == ("p['codes']",)
    assert ends(finding) == [("stop_gradient", line("commitment"), "target"),
                             ("stop_gradient", line(quantised.__name__), "estimator"),
                             ("argmin", line("argmin"), "estimated")]


@pytest.mark.parametrize("quantised", [estimator, in_three_terms], ids=lambda f: f.__name__)
def test_an_estimator_with_both_losses_is_silent(quantised: Quantiser) -> None:
    assert gradient_paths(losses(quantised, commitment=True), P, X) == []


def residual(p: Any, x: Any, *, wrong: bool = False) -> Any:
    """Two quantisers, the second one of what the first one leaves."""
    z = x @ p["enc"]
    first = chosen(z, p["codes"])
    rest = z - first
    second = chosen(rest, p["codes"])
    q = z + sg(first + second - z)
    if wrong:
        q = sg(q)  # <- residual
    return ((q @ p["dec"] - x) ** 2).mean() + ((first - sg(z)) ** 2).mean() + ((second - sg(rest)) ** 2).mean()


def test_a_residual_quantiser() -> None:
    kept = {k: v for k, v in P.items() if k != "out"}
    assert gradient_paths(residual, kept, X) == []
    (finding,) = gradient_paths(residual, kept, X, wrong=True)
    assert (finding.where.line, finding.measured["parameters"]) == (line("residual"), ("p['enc']",))


def in_a_scan(p: Any, x: Any) -> Any:
    def body(h: Any, row: Any) -> tuple[Any, Any]:
        z = jnp.tanh(h + row @ p["enc"])
        q = sg(jnp.round(z))  # <- in_a_scan
        return q, q @ p["dec"]

    return ((lax.scan(body, jnp.zeros(3), x)[1] - x) ** 2).mean()


def test_ends_within_a_loop_are_named_once() -> None:
    found = gradient_paths(in_a_scan, {"enc": P["enc"], "dec": P["dec"]}, X)
    assert [ends(f) for f in found] == [[("stop_gradient", line("in_a_scan"), "stop"),
                                         ("round", line("in_a_scan"), "step")]]


def test_a_mask_is_named_where_nothing_else_ends_the_way() -> None:
    def loss(p: Any, x: Any) -> Any:
        h = jax.nn.relu(x @ p["enc"])
        mask = (h > 0.5).astype(jnp.float32)  # <- mask
        return ((mask @ p["dec"] - x) ** 2).mean()

    (finding,) = gradient_paths(loss, {"enc": P["enc"], "dec": P["dec"]}, X)
    assert ends(finding) == [("gt", line("mask"), "comparison")]


def test_metrics_beside_the_loss_and_gradients_of_a_step_add_no_ends() -> None:
    """In the jaxpr of a whole step: an accuracy has an argmax of its own, a norm of gradients the backward pass."""
    from traindx_tools.on_jax.paths.gradient import blocked_inputs

    def step(p: Any, x: Any, y: Any) -> Any:
        def loss(p: Any) -> Any:
            logits = sg(x @ p["enc"]) @ p["out"]
            return jnp.abs(jax.nn.one_hot(y, 3) - logits).mean(), logits

        (value, logits), g = jax.value_and_grad(loss, has_aux=True)(p)
        norm = jnp.sqrt(sum(jnp.sum(v ** 2) for v in jax.tree_util.tree_leaves(g)))
        return value, (logits.argmax(-1) == y).mean(), norm

    traced = trace(step, ({"enc": P["enc"], "out": P["out"]}, X, jnp.zeros(6, jnp.int32)))
    (blocked,) = blocked_inputs(traced, reach(traced.jaxpr), [0, 1], [0, 1, 2])
    assert (blocked.names, [c.op for c in blocked.cuts]) == (("p['enc']",), ["stop_gradient"])


def test_a_branch_is_named_with_the_ends_of_the_others() -> None:
    def loss(p: Any, x: Any) -> Any:
        def without(w: Any) -> Any:
            return sg(x @ w)  # <- without

        h = lax.cond(x.sum() > 0, lambda w: x @ w, without, p["enc"])  # <- cond
        return (h @ p["dec"]).sum()

    (finding,) = gradient_paths(loss, {"enc": P["enc"], "dec": P["dec"]}, X)
    assert (finding.rule, finding.where.line) == ("J302", line("cond"))
    assert ends(finding) == [("cond", line("cond"), "fork"), ("stop_gradient", line("without"), "stop")]
    assert "other ways end at stop_gradient at" in finding.statement


def test_arguments_without_floats_have_no_gradients_to_lose() -> None:
    assert gradient_paths(lambda x: sg(x * 1.0).sum(), jnp.arange(3)) == []
    with pytest.raises(ZeroDivisionError):
        gradient_paths(lambda p: p * (1 // 0), 1.0)
