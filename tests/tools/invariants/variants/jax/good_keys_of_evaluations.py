"""The same draws for each evaluation, so that figures can be compared; keys that a star and a zip hand out."""
import jax
import jax.numpy as jnp
import optax

tx = optax.adam(1e-3)


def terms(w, x, key):
    return jnp.mean((x + jax.random.normal(key, x.shape)) @ w)


def sample(w, key):
    def euler(x, i):
        return x + 0.1 * x @ w, None

    return jax.lax.scan(euler, jax.random.normal(key, (16, 3)), jnp.arange(10))[0]


@jax.jit
def step(w, s, x, key):
    u, s = tx.update(jax.grad(terms)(w, x, key), s)
    return optax.apply_updates(w, u), s


def noisy(state, updates):
    new, *keys = jax.random.split(state["key"], len(updates) + 1)
    drawn = [u + jax.random.normal(k, u.shape) for u, k in zip(updates, keys)]
    return drawn, {"key": new}


def main(xs, held):
    key, k_held, k_draw = jax.random.split(jax.random.key(0), 3)
    w = jnp.ones((3, 3))
    s = tx.init(w)
    figure = jax.jit(lambda w: terms(w, held, k_held))
    state = {"key": jax.random.key(1)}
    for x in xs:
        key, now = jax.random.split(key)
        w, s = step(w, s, x, now)
        drawn, state = noisy(state, [w, w])
        print(figure(w), sample(w, k_draw).std(), drawn[0].std())
    return w
