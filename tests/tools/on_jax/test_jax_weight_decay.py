"""Parameters without a gradient that weight decay moves: all of them are named; averages and hidden states are not."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")
pytest.importorskip("optax")
sys.path.insert(0, str(Path(__file__).parent))

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from watching import watched

from traindx_tools.finding import Finding
from traindx_tools.live.settings import Settings
from traindx_tools.on_jax.paths.measured import shrinking

RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(size=(16, 4)), jnp.float32)
P = {"enc": {"w": jnp.asarray(RNG.normal(size=(4, 3)), jnp.float32), "b": jnp.zeros(3)},
     "dec": {"w": jnp.asarray(RNG.normal(size=(3, 4)), jnp.float32), "b": jnp.zeros(4)}}
sg = lax.stop_gradient
DECAY = optax.adamw(1e-2, weight_decay=0.1)


def features(p: Any, x: Any) -> Any:
    return jnp.tanh(x @ p["enc"]["w"] + p["enc"]["b"])


def cut(p: Any, x: Any) -> Any:
    return ((sg(features(p, x)) @ p["dec"]["w"] + p["dec"]["b"] - x) ** 2).mean()


def whole(p: Any, x: Any) -> Any:
    return ((features(p, x) @ p["dec"]["w"] + p["dec"]["b"] - x) ** 2).mean()


def trained(loss: Any, tx: Any = DECAY, steps: int = 20) -> Callable[[], None]:
    """A program that trains with one jitted step."""

    def run() -> None:
        @jax.jit
        def step(p: Any, s: Any, x: Any) -> Any:
            value, g = jax.value_and_grad(loss)(p, x)
            updates, s = tx.update(g, s, p)
            return optax.apply_updates(p, updates), s, value

        p, s = P, tx.init(P)
        for i in range(steps):
            p, s, _ = step(p, s, X * (1 + 0.1 * i))

    return run


def seen(run: Callable[[], None], folder: Path, probe: str = "always") -> list[Finding]:
    return [f for f in watched(run, Settings(str(folder), (probe,))) if f.severity.rank >= 1]


TRANSFORMS = {
    "adamw": DECAY,
    "clipped": optax.chain(optax.clip_by_global_norm(1.0), DECAY),
    "scheduled": optax.adamw(optax.cosine_decay_schedule(1e-2, 100), weight_decay=0.1),
    "sgd": optax.chain(optax.add_decayed_weights(0.1), optax.sgd(1e-2, momentum=0.9)),
    "lion": optax.lion(1e-3, weight_decay=0.5),
    "accumulated": optax.MultiSteps(DECAY, 2),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_what_weight_decay_moves_is_named_too(name: str, tmp_path: Path) -> None:
    found = seen(trained(cut, TRANSFORMS[name]), tmp_path)
    assert [(f.rule, f.measured["parameters"]) for f in found] == [("J301", ("p['enc']['b']", "p['enc']['w']"))]
    assert found[0].measured["decaying"] == ("p['enc']['w']",)
    assert "weight decay alone moved p['enc']['w'], nothing the others" in found[0].statement


def test_within_a_scan_of_steps(tmp_path: Path) -> None:
    def run() -> None:
        @jax.jit
        def steps(p: Any, s: Any, xs: Any) -> Any:
            def body(state: Any, x: Any) -> Any:
                p, s = state
                value, g = jax.value_and_grad(cut)(p, x)
                updates, s = DECAY.update(g, s, p)
                return (optax.apply_updates(p, updates), s), value

            (p, s), values = lax.scan(body, (p, s), xs)
            return p, s, values.mean()

        p, s = P, DECAY.init(P)
        for _ in range(20):
            p, s, _ = steps(p, s, jnp.stack([X, 2 * X]))

    found = seen(run, tmp_path)
    assert [(f.rule, f.measured["decaying"]) for f in found] == [("J301", ("p['enc']['w']",))]


@pytest.mark.parametrize("probe", ["gradients", "inner-gradients"])
def test_where_the_norms_are_measured(probe: str, tmp_path: Path) -> None:
    def apart() -> None:
        gradient, p, s = jax.jit(lambda p, x: jax.value_and_grad(cut)(p, x)), P, DECAY.init(P)
        for i in range(60):
            _, g = gradient(p, X * (1 + 0.01 * i))
            updates, s = DECAY.update(g, s, p)
            p = optax.apply_updates(p, updates)

    found = seen(apart if probe == "gradients" else trained(cut), tmp_path, probe)
    assert [(f.rule, f.measured["decaying"]) for f in found] == [("J301", ("p['enc']['w']",))]
    assert "measured norm" in found[0].statement


def average_of_the_encoder() -> None:
    @jax.jit
    def step(p: Any, target: Any, s: Any, x: Any) -> Any:
        value, g = jax.value_and_grad(lambda p: ((features(p, x) - sg(features(target, x)) + 1.0) ** 2).mean()
                                      + whole(p, x))(p)
        updates, s = DECAY.update(g, s, p)
        p = optax.apply_updates(p, updates)
        return p, optax.incremental_update(p, target, 0.05), s, value

    p, target, s = P, jax.tree_util.tree_map(lambda v: v + 0.1, P), DECAY.init(P)
    for _ in range(20):
        p, target, s, _ = step(p, target, s, X)


def codes_by_averages() -> None:
    def loss(p: Any, codes: Any, x: Any) -> Any:
        z = features(p, x)
        index = ((z[:, None] - codes[None]) ** 2).sum(-1).argmin(-1)
        q = z + sg(codes[index] - z)
        return ((q @ p["dec"]["w"] + p["dec"]["b"] - x) ** 2).mean() + ((z - sg(codes[index])) ** 2).mean(), (z, index)

    @jax.jit
    def step(p: Any, codes: Any, s: Any, x: Any) -> Any:
        (value, (z, index)), g = jax.value_and_grad(loss, has_aux=True)(p, codes, x)
        hot = jax.nn.one_hot(index, len(codes))
        codes = 0.99 * codes + 0.01 * (hot.T @ z) / jnp.maximum(hot.sum(0), 1.0)[:, None]
        updates, s = DECAY.update(g, s, p)
        return optax.apply_updates(p, updates), codes, s, value

    p, codes, s = P, jnp.asarray(RNG.normal(size=(5, 3)), jnp.float32), DECAY.init(P)
    for _ in range(20):
        p, codes, s, _ = step(p, codes, s, X)


def state_that_is_carried_on() -> None:
    @jax.jit
    def step(p: Any, hidden: Any, s: Any, x: Any) -> Any:
        def loss(p: Any) -> Any:
            h = jnp.tanh(x @ p["enc"]["w"] + p["enc"]["b"] + sg(hidden * 1.0))
            return ((h @ p["dec"]["w"] + p["dec"]["b"] - x) ** 2).mean(), h

        (value, hidden), g = jax.value_and_grad(loss, has_aux=True)(p)
        updates, s = DECAY.update(g, s, p)
        return optax.apply_updates(p, updates), hidden, s, value

    p, hidden, s = P, jnp.zeros((16, 3)), DECAY.init(P)
    for _ in range(20):
        p, hidden, s, _ = step(p, hidden, s, X)


def frozen_on_purpose(p: Any, x: Any) -> Any:
    return whole({**p, "enc": sg(p["enc"])}, x)


HEALTHY = [trained(whole), trained(frozen_on_purpose), average_of_the_encoder, codes_by_averages,
           state_that_is_carried_on]


@pytest.mark.parametrize("program", HEALTHY, ids=["whole", "frozen", "average", "codes", "hidden"])
def test_what_moves_by_more_than_itself_is_left_alone(program: Callable[[], None], tmp_path: Path) -> None:
    assert seen(program, tmp_path) == []


def test_a_few_calls_prove_nothing(tmp_path: Path) -> None:
    assert seen(trained(cut, steps=6), tmp_path) == []


STEPS = (2, 3, 5, 9, 13, 29)
ALL = np.ones(2, bool)


@functools.cache
def decayed(rate: float, *starts: float) -> Any:
    return np.array([[s * (1 - rate) ** (t - 2) for s in starts] for t in STEPS], np.float32)


def test_norms_shrink_together_or_at_a_constant_pace() -> None:
    assert shrinking(decayed(1e-3, 2.0, 7.0), STEPS, ALL).all()
    assert shrinking(decayed(1e-3, 2.0), STEPS, ALL[:1]).all()
    uneven = np.array([[2.0 * f, 7.0 * f] for f in (1, 0.9, 0.85, 0.5, 0.45, 0.4)])
    assert shrinking(uneven, STEPS, ALL).all()
    assert not shrinking(uneven[:, :1], STEPS, ALL[:1]).any()


def test_other_courses_are_no_decay() -> None:
    growing, other = decayed(1e-3, 2.0, 7.0)[::-1], np.stack([np.linspace(2, 1, 6), np.linspace(7, 6.5, 6)], 1)
    for values in (growing, other, np.ones((6, 2)), np.zeros((6, 2)), np.full((6, 2), np.nan), decayed(1e-9, 2.0, 7.0)):
        assert not shrinking(values, STEPS, ALL).any()
    assert not shrinking(decayed(1e-3, 2.0, 7.0), STEPS, ~ALL).any()
