"""JAX programs whose step goes wrong, one fault each; each returns all that it has at its end, exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

Program = Callable[[], list[str]]


def exactly(*trees: Any) -> list[str]:
    """The bytes of every array."""
    return [np.asarray(x).tobytes().hex() for t in trees for x in jax.tree_util.tree_leaves(t)]


def parameters(seed: int = 0) -> dict[str, Any]:
    one, two = jax.random.split(jax.random.key(seed))
    return {"a": {"w": jax.random.normal(one, (8, 32)) / 3, "b": jnp.zeros(32)},
            "b": {"w": jax.random.normal(two, (32, 1)) / 6, "b": jnp.zeros(1)}}


def network(p: Any, x: Any) -> Any:
    return jax.nn.relu(x @ p["a"]["w"] + p["a"]["b"]) @ p["b"]["w"] + p["b"]["b"]


def data(count: int = 512) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, 8)).astype(np.float32)
    return x, x[:, :1] + 0.1 * rng.normal(size=(count, 1)).astype(np.float32)


def loop(tx: Any, *, x: Any = None, y: Any = None, forward: Callable[..., Any] = network, steps: int = 32,
         donate: tuple[int, ...] = (), params: Any = None, before: Callable[[int, Any, Any], Any] = lambda n, p, o: o,
         ) -> list[str]:
    """The usual loop: a jitted step of parameters, state, batch and key."""
    given = data()
    x, y = given[0] if x is None else x, given[1] if y is None else y
    params = parameters() if params is None else params
    opt = tx.init(params)

    def step(params: Any, opt: Any, x: Any, y: Any, key: Any) -> Any:
        def loss_fn(p: Any) -> Any:
            keep = jax.random.bernoulli(key, 0.9, x.shape)
            return jnp.mean((forward(p, x * keep) - y) ** 2)

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt = tx.update(grads, opt, params)
        return optax.apply_updates(params, updates), opt, loss

    jitted = jax.jit(step, donate_argnums=donate)
    key = jax.random.key(1)
    for number in range(steps):
        rows = slice(16 * number % len(x), 16 * number % len(x) + 16)
        key, part = jax.random.split(key)
        opt = before(number, params, opt)
        params, opt, loss = jitted(params, opt, x[rows], y[rows], part)
        if not np.isfinite(float(loss)):
            break
    return exactly(params, opt)


# ---- faults


def bad_row() -> list[str]:
    """Row 203 holds an infinity: it comes in the thirteenth step."""
    x, y = data()
    x[203, 3] = np.inf
    return loop(optax.adam(1e-3), x=x, y=y)


def bad_row_donated() -> list[str]:
    """The same where the step takes its state away."""
    x, y = data()
    x[203, 3] = np.inf
    return loop(optax.adam(1e-3), x=x, y=y, donate=(0, 1))


def outlying_row() -> list[str]:
    """One target of 3,000 in step 26: the loss jumps."""
    x, y = data()
    y[410] = 3_000.0
    return loop(optax.sgd(1e-2), x=x, y=y)


def high_rate() -> list[str]:
    """Plain gradient descent that diverges."""
    return loop(optax.sgd(2.0), steps=40)


def injected_rate() -> list[str]:
    """The same with the rate in the optimizer's state."""
    return loop(optax.inject_hyperparams(optax.sgd)(learning_rate=2.0), steps=40)


def half_overflow() -> list[str]:
    """Activations beyond 65504 in float16 in step 20."""
    def forward(p: Any, x: Any) -> Any:
        h = (x.astype(jnp.float16) @ (800 * p["a"]["w"]).astype(jnp.float16))
        h = h / (jnp.max(jnp.abs(h), axis=1, keepdims=True) + 1)
        return (h @ p["b"]["w"].astype(jnp.float16)).astype(jnp.float32)

    x, y = data()
    x[320:336] *= 60.0
    return loop(optax.sgd(1e-3), x=x, y=y, forward=forward)


def wrong_state() -> list[str]:
    """Adam's second moment is lost at step 25, and the first is of another scale."""
    def before(number: int, params: Any, opt: Any) -> Any:
        if number != 25:
            return opt
        moments = opt[0]
        return (moments._replace(mu=jax.tree_util.tree_map(lambda m: 1e5 * m, moments.mu)), *opt[1:])

    return loop(optax.adam(1e-2), before=before)


def healthy() -> list[str]:
    """It learns, with a key and a scheduled rate."""
    return loop(optax.adamw(optax.cosine_decay_schedule(1e-2, 32)))


def outside_update() -> list[str]:
    """The gradient is jitted and the update made outside of it."""
    x, y = data()
    params, tx = parameters(), optax.sgd(2.0)
    opt = tx.init(params)
    gradient = jax.jit(jax.value_and_grad(lambda p, x, y: jnp.mean((network(p, x) - y) ** 2)))
    for number in range(30):
        rows = slice(16 * number % 512, 16 * number % 512 + 16)
        loss, grads = gradient(params, x[rows], y[rows])
        updates, opt = tx.update(grads, opt, params)
        params = optax.apply_updates(params, updates)
        if not np.isfinite(float(loss)):
            break
    return exactly(params)


def flax_linen() -> list[str]:
    """A flax module with TrainState."""
    from flax import linen
    from flax.training.train_state import TrainState

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x: Any) -> Any:
            return linen.Dense(1)(jax.nn.relu(linen.Dense(32)(x)))

    x, y = data()
    x[203, 3] = np.nan
    net = Net()
    state = TrainState.create(apply_fn=net.apply, params=net.init(jax.random.key(0), x[:1]), tx=optax.adam(1e-3))

    @jax.jit
    def step(state: Any, x: Any, y: Any) -> Any:
        loss, grads = jax.value_and_grad(lambda p: jnp.mean((state.apply_fn(p, x) - y) ** 2))(state.params)
        return state.apply_gradients(grads=grads), loss

    for number in range(32):
        rows = slice(16 * number, 16 * number + 16)
        state, loss = step(state, x[rows], y[rows])
        if not np.isfinite(float(loss)):
            break
    return exactly(state.params)


def equinox_module() -> list[str]:
    """An equinox module under filter_jit."""
    import equinox as eqx

    x, y = data()
    x[203, 3] = np.nan
    model = eqx.nn.MLP(8, 1, 32, 1, key=jax.random.key(0))
    tx = optax.adam(1e-3)
    opt = tx.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit
    def step(model: Any, opt: Any, x: Any, y: Any) -> Any:
        loss, grads = eqx.filter_value_and_grad(lambda m: jnp.mean((jax.vmap(m)(x) - y) ** 2))(model)
        updates, opt = tx.update(grads, opt, model)
        return eqx.apply_updates(model, updates), opt, loss

    for number in range(32):
        rows = slice(16 * number, 16 * number + 16)
        model, opt, loss = step(model, opt, x[rows], y[rows])
        if not np.isfinite(float(loss)):
            break
    return exactly(eqx.filter(model, eqx.is_inexact_array))


def dead_moments() -> list[str]:
    """RMSProp without an epsilon, in a parameter that never gets a gradient: 0 / 0 in the state, a sane loss."""
    params = {**parameters(), "unused": jnp.ones(3)}
    return loop(optax.chain(optax.scale_by_rms(eps=0.0), optax.scale(-1e-4)), params=params)
