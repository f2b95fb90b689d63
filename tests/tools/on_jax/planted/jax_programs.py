"""Small trainings with flax linen, flax nnx, equinox, optax and orbax: each whole, and with one planted fault.

A program takes `fault` and a folder, trains, and returns the bytes of all that it has computed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

X = jnp.asarray(np.random.default_rng(0).normal(1.0, 2.0, size=(16, 6)), jnp.float32)
Y = jnp.asarray(np.random.default_rng(1).integers(0, 3, 16), jnp.int32)
STEPS = 14


def as_bytes(tree: Any) -> bytes:
    return b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree_util.tree_leaves(tree))


def linen(fault: bool, _: Path) -> bytes:
    """The running statistics of a BatchNorm are dropped."""
    from flax import linen as nn
    from flax.training import train_state

    class State(train_state.TrainState):  # type: ignore[misc]
        batch_stats: Any

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x: Any, train: bool) -> Any:
            x = nn.BatchNorm(use_running_average=not train)(nn.Dense(8)(x))  # <- linen
            return nn.Dense(3)(nn.relu(x))

    net = Net()
    made = net.init(jax.random.PRNGKey(0), X, True)
    state = State.create(apply_fn=net.apply, params=made["params"], tx=optax.adam(1e-2),
                         batch_stats=made["batch_stats"])

    @jax.jit
    def step(state: Any, x: Any, y: Any) -> Any:
        def loss_fn(p: Any) -> Any:
            out, changed = state.apply_fn({"params": p, "batch_stats": state.batch_stats}, x, True,
                                          mutable=["batch_stats"])
            return optax.softmax_cross_entropy_with_integer_labels(out, y).mean(), changed["batch_stats"]

        (loss, stats), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
        state = state.apply_gradients(grads=grads)
        return (state if fault else state.replace(batch_stats=stats)), loss

    for _ in range(STEPS):
        state, loss = step(state, X, Y)
    return as_bytes((state.params, state.batch_stats, loss))


def nnx(fault: bool, _: Path) -> bytes:
    """Targets become one-hot, whose logarithm is infinite."""
    from flax import nnx

    class Model(nnx.Module):  # type: ignore[misc]
        def __init__(self, rngs: Any) -> None:
            self.a, self.b = nnx.Linear(6, 8, rngs=rngs), nnx.Linear(8, 3, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return self.b(nnx.relu(self.a(x)))

    model = Model(nnx.Rngs(0))
    try:
        optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
    except TypeError:  # before flax 0.8.5
        optimizer = nnx.Optimizer(model, optax.adam(1e-2))

    @nnx.jit
    def step(model: Any, optimizer: Any, x: Any, target: Any) -> Any:
        def loss_fn(model: Any) -> Any:
            p = nnx.softmax(model(x))
            return (target * (jnp.log(target) - jnp.log(p + 1e-8))).sum(-1).mean()  # <- nnx

        loss, grads = nnx.value_and_grad(loss_fn)(model)
        try:
            optimizer.update(model, grads)
        except TypeError:
            optimizer.update(grads)
        return loss

    soft = jax.nn.softmax(X[:, :3])
    for i in range(STEPS):
        loss = step(model, optimizer, X, jax.nn.one_hot(Y, 3) if fault and i >= 6 else soft)
        float(loss)
    return as_bytes((nnx.state(model), loss))


def equinox(fault: bool, _: Path) -> bytes:
    """Dropout draws from one key in all steps."""
    import equinox as eqx

    net = eqx.nn.MLP(6, 1, 8, 1, key=jax.random.PRNGKey(1))
    tx = optax.adam(1e-2)
    state = tx.init(eqx.filter(net, eqx.is_array))

    @eqx.filter_jit
    def step(net: Any, state: Any, x: Any, key: Any) -> Any:
        def loss_fn(net: Any) -> Any:
            kept = x * jax.random.bernoulli(key, 0.8, x.shape)  # <- equinox
            return ((jax.vmap(net)(kept)[:, 0] - x.sum(1)) ** 2).mean()

        loss, grads = eqx.filter_value_and_grad(loss_fn)(net)
        updates, state = tx.update(grads, state, eqx.filter(net, eqx.is_array))
        return eqx.apply_updates(net, updates), state, loss

    key = jax.random.PRNGKey(2)
    for _ in range(STEPS):
        key, sub = (key, key) if fault else jax.random.split(key)
        net, state, loss = step(net, state, X, sub)
    return as_bytes((eqx.filter(net, eqx.is_array), loss))


def scheduled(fault: bool, _: Path) -> bytes:
    """The new optimizer state, and with it the count of the schedule, never comes back."""
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.warmup_cosine_decay_schedule(1e-4, 1e-2, 5, 50)))

    @jax.jit
    def step(p: Any, s: Any, x: Any, y: Any) -> Any:
        def loss_fn(p: Any) -> Any:
            return optax.softmax_cross_entropy_with_integer_labels(jnp.tanh(x @ p["a"]) @ p["b"], y).mean()

        loss, grads = jax.value_and_grad(loss_fn)(p)
        updates, s = tx.update(grads, s, p)
        return optax.apply_updates(p, updates), s, loss

    p = {"a": jnp.ones((6, 8)) * 0.1, "b": jnp.asarray(np.random.default_rng(2).normal(size=(8, 3)), jnp.float32)}
    s = tx.init(p)
    for _ in range(STEPS):
        p, new, loss = step(p, s, X, Y)
        s = s if fault else new
    return as_bytes((p, loss))


def orbax(fault: bool, folder: Path) -> bytes:
    """Parameters are restored from a checkpoint in each step, so that training never leaves it."""
    import orbax.checkpoint as ocp

    tx = optax.sgd(0.1)

    @jax.jit
    def step(p: Any, s: Any, x: Any) -> Any:
        loss, grads = jax.value_and_grad(lambda p: ((x @ p["w"]).mean() - 1.0) ** 2)(p)
        updates, s = tx.update(grads, s, p)
        return optax.apply_updates(p, updates), s, loss

    checkpointer = ocp.PyTreeCheckpointer()
    p = {"w": jnp.ones((6, 2)) * 0.1, "v": jnp.ones((3, 2))}
    s = tx.init(p)
    checkpointer.save(folder / "first", p)
    restored = jax.tree_util.tree_map(jnp.asarray, checkpointer.restore(folder / "first"))
    p = restored
    for i in range(STEPS):
        new, s, loss = step(p, s, X)
        p = restored if fault else new
        if i == 7:
            checkpointer.save(folder / "seventh", p)
    return as_bytes((p, loss))
