"""Retrain the head of a frozen flax encoder on leaf-moisture regression, SGDR restarts."""
import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax import traverse_util

CYCLES = [dict(init_value=0.0, peak_value=0.25, warmup_steps=5, decay_steps=80, end_value=0.001) for _ in range(3)]
NOISE = 0.4


class Encoder(nn.Module):
    @nn.compact
    def __call__(self, x):
        for w in (128, 128):
            x = nn.gelu(nn.Dense(w, kernel_init=nn.initializers.orthogonal(1.6))(x))
        return x


class Regressor(nn.Module):
    @nn.compact
    def __call__(self, x):
        z = Encoder(name="encoder")(x)
        return nn.Dense(1, name="head")(z).squeeze(-1)


def data(key, n):
    a, b, c = jax.random.split(key, 3)
    x = jax.random.normal(a, (n, 3))
    w = jax.random.normal(jax.random.PRNGKey(77), (3,))
    return x, jnp.tanh(x @ w) + 0.3 * x[:, 0] + NOISE * jax.random.normal(b, (n,))


def labels(params):
    flat = traverse_util.flatten_dict(params)
    return traverse_util.unflatten_dict({k: "freeze" if "encoder" in k else "train" for k in flat})


model = Regressor()
schedule = optax.sgdr_schedule(CYCLES)
tx = optax.multi_transform({"train": optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(schedule, momentum=0.9)),
                            "freeze": optax.set_to_zero()}, labels)


def mse(params, x, y):
    return jnp.mean((model.apply({"params": params}, x) - y) ** 2)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def update(params, state, x, y):
    loss, g = jax.value_and_grad(mse)(params, x, y)
    upd, state = tx.update(g, state, params)
    return optax.apply_updates(params, upd), state, loss, optax.global_norm(upd)


def main():
    k0, k1, k2, k3 = jax.random.split(jax.random.PRNGKey(5), 4)
    (x, y), (xv, yv) = data(k0, 2000), data(k1, 1000)
    params = model.init(k2, x[:2])["params"]
    state = tx.init(params)
    val = jax.jit(mse)
    acc = []
    for step in range(240):
        k3, k = jax.random.split(k3)
        i = jax.random.randint(k, (32,), 0, len(y))
        params, state, loss, un = update(params, state, x[i], y[i])
        acc.append(float(loss))
        if (step + 1) % 8 == 0:
            print(f"step {step + 1:>4} | lr {float(schedule(step)):.4f} | train mse {sum(acc) / len(acc):.4f} | "
                  f"val mse {float(val(params, xv, yv)):.4f} | update norm {float(un):.2e}", flush=True)
            acc = []
    print(f"label noise variance {NOISE ** 2:.2f}")


if __name__ == "__main__":
    main()
