"""What can be changed in a JAX program from outside of its compiled functions; what cannot says so."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

X = np.random.default_rng(0).normal(size=(32, 4)).astype("float32")
Y = (X.sum(1) > 0).astype("float32")


def loss_of(params: Any, x: Any, y: Any) -> Any:
    z = x @ params["w"] + params["b"]
    return jnp.mean(jnp.log1p(jnp.exp(-(2 * y - 1) * z)))


def start(seed: int = 0) -> Any:
    return {"w": jax.random.normal(jax.random.key(seed), (4,)) * 0.1, "b": jnp.zeros(())}


def train(make: Callable[[], Any], on_device: bool = True,
          outside: bool = False) -> tuple[list[float], Any, list[float]]:
    """The losses, the weights, and what an evaluation over other batches gave."""
    params, tx = start(), make()
    state = tx.init(params)

    @jax.jit
    def step(params: Any, state: Any, x: Any, y: Any) -> Any:
        loss, gradient = jax.value_and_grad(loss_of)(params, x, y)
        updates, state = tx.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, loss

    gradients, evaluate = jax.jit(jax.value_and_grad(loss_of)), jax.jit(loss_of)
    losses = []
    for i in range(0, 32, 8):
        batch = (X[i:i + 8], Y[i:i + 8])
        x, y = map(jnp.asarray, batch) if on_device else batch
        if outside:
            loss, gradient = gradients(params, x, y)
            updates, state = tx.update(gradient, state, params)
            params = optax.apply_updates(params, updates)
        else:
            params, state, loss = step(params, state, x, y)
        losses.append(float(loss))
    frozen = start()
    return losses, params, [float(evaluate(frozen, X[i:i + 8], Y[i:i + 8])) for i in range(0, 32, 8)]


def close(one: Any, other: Any) -> bool:
    return all(jax.tree.leaves(jax.tree.map(lambda a, b: bool(jnp.allclose(a, b, atol=1e-5)), one, other)))


@pytest.mark.slow
@pytest.mark.parametrize("outside", [False, True])
def test_updates_are_scaled(changed: Any, outside: bool) -> None:
    expected = train(lambda: optax.sgd(0.05, momentum=0.9), outside=outside)[1]
    with changed("learning-rate:times=0.5") as told:
        found = train(lambda: optax.sgd(0.1, momentum=0.9), outside=outside)[1]
    assert close(expected, found)
    assert told.applied.times >= 1
    assert not close(train(lambda: optax.sgd(0.1, momentum=0.9))[1], found)


@pytest.mark.slow
def test_a_schedule_is_one_rate(changed: Any) -> None:
    expected = train(lambda: optax.adamw(0.1))[1]
    with changed("schedule-fixed") as told:
        found = train(lambda: optax.adamw(optax.cosine_decay_schedule(0.1, 4)))[1]
    assert close(expected, found)
    assert told.applied.times == 1
    with changed("schedule-fixed:value=0.1") as told:
        found = train(lambda: optax.chain(optax.scale_by_adam(), optax.add_decayed_weights(1e-4),
                                          optax.scale_by_schedule(lambda count: -1.0 / (count + 1))))[1]
    assert close(expected, found)
    with changed("schedule-fixed") as told:
        found = train(lambda: optax.adamw(optax.linear_schedule(0.0, 0.1, 4)))[1]
    assert close(expected, found)
    assert told.applied.where == "a schedule, at a rate of 0.1: the peak of the schedule, at update 4"
    with changed("schedule-fixed") as told:
        train(lambda: optax.adamw(optax.constant_schedule(0.0)))
    assert "value=" in told.applied.problem
    with changed("schedule-fixed") as told:
        train(lambda: optax.sgd(0.1))
    assert (told.applied.times, "no schedule" in told.applied.problem) == (0, True)


@pytest.mark.slow
@pytest.mark.parametrize(("change", "wrapped", "plain"), [
    ("no-clipping", lambda: optax.chain(optax.clip_by_global_norm(1e-3), optax.clip(1e-3), optax.sgd(0.1)),
     lambda: optax.sgd(0.1)),
    ("no-decay", lambda: optax.adamw(0.1, weight_decay=0.9), lambda: optax.adam(0.1)),
    ("optimizer:name=sgd,times=2", lambda: optax.adamw(optax.constant_schedule(0.1)), lambda: optax.sgd(0.2)),
    ("optimizer:name=momentum", lambda: optax.adam(0.1), lambda: optax.sgd(0.1, momentum=0.9)),
])
def test_what_optax_makes(changed: Any, change: str, wrapped: Any, plain: Any) -> None:
    expected = train(plain)[1]
    with changed(change) as told:
        found = train(wrapped)[1]
    assert close(expected, found)
    assert told.applied.times >= 1
    assert not told.applied.problem
    with changed(change) as told:
        train(lambda: optax.scale(-0.1))
    assert told.applied.times == 0
    assert told.applied.problem


@pytest.mark.parametrize("on_device", [True, False])
@pytest.mark.parametrize("outside", [True, False])
def test_one_batch_in_the_arguments_of_the_step(changed: Any, on_device: bool, outside: bool) -> None:
    natural = train(lambda: optax.sgd(0.0), on_device, outside)
    with changed("one-batch") as told:
        losses, _, evaluated = train(lambda: optax.sgd(0.0), on_device, outside)
    assert len(set(natural[0])) == 4
    assert len(set(losses)) == 1
    assert losses[0] == natural[0][0]
    assert evaluated == natural[2]
    assert told.applied.times == 3


@pytest.mark.slow
def test_a_step_that_gets_the_same_arrays_each_time_says_so(changed: Any) -> None:
    x, y = jnp.asarray(X), jnp.asarray(Y)
    with changed("one-batch") as told:
        step = jax.jit(lambda p: jax.tree.map(lambda a, g: a - 0.1 * g, p, jax.grad(loss_of)(p, x, y)))
        params = start()
        for _ in range(4):
            params = step(params)
    assert told.applied.times == 0
    assert "same arrays" in told.applied.problem


@pytest.mark.slow
def test_a_batch_of_the_shape_of_an_output_is_not_guessed(changed: Any) -> None:
    def step(w: Any, x: Any) -> Any:
        return w - 0.1 * jax.grad(lambda w: jnp.mean((x * w - x) ** 2))(w), x * w

    with changed("one-batch") as told:
        w, jitted = jnp.ones(4), jax.jit(step)
        for i in range(4):
            w, _ = jitted(w, jnp.full((8, 4), float(i)))
    assert told.applied.times == 0
    assert "not known" in told.applied.problem


def test_keys_and_counts_go_on(changed: Any) -> None:
    seen = []

    def step(w: Any, x: Any, key: Any, old: Any, count: Any) -> Any:
        return w + 1, x.sum(), jax.random.uniform(key), jax.random.uniform(old), count

    with changed("one-batch"):
        w, jitted = jnp.zeros(3), jax.jit(step)
        for i in range(4):
            w, *rest = jitted(w, np.full(8, float(i)), jax.random.key(i), jax.random.PRNGKey(i), jnp.asarray(i))
            seen.append([float(r) for r in rest])
    total, key, old, count = zip(*seen, strict=True)
    assert len(set(total)) == 1
    assert len(set(key)) == len(set(old)) == len(set(count)) == 4


def test_seeds_of_keys(changed: Any) -> None:
    expected = [jax.random.uniform(make(7)) for make in (jax.random.key, jax.random.PRNGKey)]
    with changed("seed:by=4") as told:
        found = [jax.random.uniform(make(s)) for make in (jax.random.key, jax.random.PRNGKey)
                 for s in (3, np.int32(3), jnp.asarray(3))]
        train(lambda: optax.sgd(0.1))
    assert found == [expected[0]] * 3 + [expected[1]] * 3
    assert told.applied.times >= 6


def test_a_seed_that_is_traced(changed: Any) -> None:
    """flax asks jax.eval_shape for the kind of a key: the number has no value there."""
    nn = pytest.importorskip("flax.linen")
    with changed("seed:by=4"):
        shape = jax.eval_shape(lambda s: jax.random.key(s), 0)
        moved = jax.jit(lambda s: jax.random.key_data(jax.random.key(s)))(0)
        nn.Dense(2).init(jax.random.PRNGKey(0), X[:1])
    assert shape.shape == ()
    assert bool((moved == jax.random.key_data(jax.random.key(4))).all())


@pytest.mark.slow
@pytest.mark.parametrize(("change", "setting", "value"), [
    ("float64", "jax_enable_x64", True), ("no-compile", "jax_disable_jit", True),
    ("stop-at-nan", "jax_debug_nans", True),
    ("full-products", "jax_default_matmul_precision", "highest")])
def test_settings_of_jax_stand_for_the_run(changed: Any, change: str, setting: str, value: Any) -> None:
    before = getattr(jax.config, setting)
    with changed(change) as told:
        assert getattr(jax.config, setting) == value
        train(lambda: optax.sgd(0.1))
    assert getattr(jax.config, setting) == before
    assert told.applied.times == 1
    with changed(change) as told:
        train(lambda: optax.sgd(0.1))
        jax.config.update(setting, before)
    assert "itself" in told.applied.problem


def test_activations_are_kept(changed: Any) -> None:
    importlib.import_module("jax.ad_checkpoint")  # as programs that name what they keep do

    def remat(p: Any) -> str:
        return str(jax.make_jaxpr(jax.grad(lambda p: jax.checkpoint(loss_of)(p, X, Y)))(p))

    assert "remat" in remat(start())
    with changed("no-checkpointing") as told:
        assert "remat" not in remat(start())
        assert "checkpoint" not in remat(start())
        train(lambda: optax.sgd(0.1))
    assert told.applied.times == 2
    with changed("no-checkpointing") as told:
        train(lambda: optax.sgd(0.1))
    assert "was called" in told.applied.problem


def test_averages_take_the_new_values(changed: Any) -> None:
    with changed("no-ema") as told:
        assert float(optax.incremental_update(jnp.ones(()), jnp.zeros(()), 0.01)) == 1.0
        train(lambda: optax.sgd(0.1))
    assert told.applied.times == 1


@pytest.mark.slow
def test_dropout_of_flax_and_equinox(changed: Any) -> None:
    nn = pytest.importorskip("flax.linen")
    nnx = pytest.importorskip("flax.nnx")
    eqx = pytest.importorskip("equinox")
    x, key = jnp.ones(100), jax.random.key(0)

    def outputs() -> list[Any]:
        return [nn.Dropout(0.5).apply({}, x, deterministic=False, rngs={"dropout": key}),
                nn.Dropout(0.5, deterministic=False).apply({}, x, rngs={"dropout": key}),
                nnx.Dropout(0.5, rngs=nnx.Rngs(0), deterministic=False)(x), eqx.nn.Dropout(0.5)(x, key=key)]

    assert not any(bool(jnp.all(o == 1)) for o in outputs())
    with changed("no-dropout") as told:
        assert all(bool(jnp.all(o == 1)) for o in outputs())
        train(lambda: optax.sgd(0.1))
    assert told.applied.times == 4
    assert not any(bool(jnp.all(o == 1)) for o in outputs())


@pytest.mark.parametrize("change", ["labels-permuted", "frozen:module=a", "clear-gradients", "batch-statistics",
                                    "no-autocast"])
def test_what_is_not_for_jax_says_so(changed: Any, change: str) -> None:
    with changed(change) as told:
        train(lambda: optax.sgd(0.1))
    assert told.applied.times == 0
    assert "not for jax" in told.applied.problem


@pytest.mark.slow
def test_the_placebo_changes_no_bit(changed: Any) -> None:
    expected = train(lambda: optax.adamw(0.1))
    with changed("placebo") as told:
        found = train(lambda: optax.adamw(0.1))
    assert expected[0] == found[0]
    assert all(jax.tree.leaves(jax.tree.map(lambda a, b: bool((a == b).all()), expected[1], found[1])))
    assert told.applied.times >= 1


def _grouped(held: Any) -> Any:
    """A transformation by label, in which the first leaf is held."""
    def label(params: Any) -> Any:
        leaves, form = jax.tree_util.tree_flatten(params)
        return jax.tree_util.tree_unflatten(form, ["rest"] + ["moved"] * (len(leaves) - 1))
    return optax.multi_transform({"moved": optax.sgd(0.1), "rest": held()}, label)


def test_what_a_multi_transform_holds_is_trained(changed: Any) -> None:
    with changed("thawed:module=*") as told:
        found = train(lambda: _grouped(optax.set_to_zero))[1]
    assert close(found, train(lambda: optax.sgd(0.1))[1])
    assert told.applied.times == 1
    assert not close(train(lambda: _grouped(optax.set_to_zero))[1], found), "taken out again"


@pytest.mark.parametrize("module", ["*", "head.*"])
def test_nothing_to_thaw_and_a_module_that_optax_does_not_know_are_said(changed: Any, module: str) -> None:
    with changed(f"thawed:module={module}") as told:
        train(lambda: _grouped(lambda: optax.sgd(0.01)))
    assert not told.applied.times
    assert ("module=*" if module != "*" else "nothing is held") in told.applied.problem
