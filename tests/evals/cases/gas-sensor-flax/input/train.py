import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training import train_state

from net import DriftNet

GASES, SENSORS, T = 6, 8, 40


def measurements(n, seed):
    rng = np.random.default_rng(seed)
    ref = np.random.default_rng(2024)
    tau = ref.uniform(3, 25, size=(GASES, SENSORS))
    gain = ref.uniform(4, 14, size=(GASES, SENSORS))
    baseline = ref.uniform(30, 90, size=SENSORS)
    y = rng.integers(0, GASES, n)
    t = np.arange(T)[None, :, None]
    resp = gain[y][:, None, :] * (1 - np.exp(-t / tau[y][:, None, :]))
    x = baseline + resp * rng.uniform(0.7, 1.3, (n, 1, 1)) + rng.normal(0, 1.5, (n, T, SENSORS))
    return x.astype(np.float32), y


class State(train_state.TrainState):
    batch_stats: dict


def create(key):
    model = DriftNet()
    v = model.init({"params": key, "dropout": key}, jnp.zeros((2, T, SENSORS)), train=False)
    tx = optax.adamw(optax.cosine_decay_schedule(2e-3, 400), weight_decay=1e-4)
    return State.create(apply_fn=model.apply, params=v["params"], tx=tx, batch_stats=v["batch_stats"])


@jax.jit
def update(state, x, y, key):
    def objective(params):
        logits, mutated = state.apply_fn(
            {"params": params, "batch_stats": state.batch_stats}, x, train=True,
            mutable=["batch_stats"], rngs={"dropout": key},
        )
        ce = optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()
        return ce, (logits, mutated)

    (ce, (logits, mutated)), grads = jax.value_and_grad(objective, has_aux=True)(state.params)
    state = state.apply_gradients(grads=grads)
    return state, {"ce": ce, "acc": (logits.argmax(-1) == y).mean()}


@jax.jit
def predict(state, x):
    return state.apply_fn({"params": state.params, "batch_stats": state.batch_stats}, x, train=False)


def main():
    key = jax.random.key(0)
    state = create(key)
    x, y = measurements(1600, 1)
    xt, yt = measurements(400, 2)
    rng = np.random.default_rng(0)
    for epoch in range(10):
        seen = []
        for idx in np.array_split(rng.permutation(len(x)), 40):
            key, sub = jax.random.split(key)
            state, m = update(state, x[idx], y[idx], sub)
            seen.append(m)
        mean = jax.tree.map(lambda *v: float(np.mean(v)), *seen)
        logits = predict(state, xt)
        test_ce = optax.softmax_cross_entropy_with_integer_labels(logits, yt).mean()
        test_acc = (np.asarray(logits).argmax(-1) == yt).mean()
        print(f"epoch {epoch} :: train ce {mean['ce']:.3f} acc {mean['acc']:.3f} :: test ce {float(test_ce):.3f} acc {test_acc:.3f}")


if __name__ == "__main__":
    main()
