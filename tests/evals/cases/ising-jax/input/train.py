"""Energy regression on toy spin chains, plain JAX with an adaptive clipping rule."""
import dataclasses
import jax
import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass(frozen=True)
class Conf:
    spins: int = 20
    hidden: int = 64
    lr: float = 0.03
    batch: int = 128
    steps: int = 400
    clip: float = 1.0


def init(conf, key):
    k1, k2 = jax.random.split(key)
    return dict(w1=jax.random.normal(k1, (conf.spins, conf.hidden)) / np.sqrt(conf.spins), b1=jnp.zeros(conf.hidden),
                w2=jax.random.normal(k2, (conf.hidden,)) / np.sqrt(conf.hidden), b2=jnp.zeros(()))


def energy(params, s):
    pair = s * jnp.roll(s, 1, axis=-1)
    return jnp.tanh(pair @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]


def rmse2(params, s, e):
    return jnp.mean((energy(params, s) - e) ** 2)


def global_norm(tree):
    return jnp.sqrt(sum(jnp.sum(x ** 2) for x in jax.tree.leaves(tree)))


def clip_tree(grads, limit):
    norm = global_norm(grads)
    if norm > limit:
        grads = jax.tree.map(lambda g: g * (limit / norm), grads)
    return grads, norm


def make_step(conf):
    @jax.jit
    def step(params, s, e):
        loss, grads = jax.value_and_grad(rmse2)(params, s, e)
        grads, norm = clip_tree(grads, conf.clip)
        return jax.tree.map(lambda p, g: p - conf.lr * g, params, grads), loss, norm
    return step


def chains(rng, conf, coupling):
    s = rng.choice([-1.0, 1.0], size=(conf.batch, conf.spins)).astype(np.float32)
    e = -(coupling * s * np.roll(s, 1, axis=-1)).sum(-1) / np.sqrt(conf.spins)
    return jnp.asarray(s), jnp.asarray(e, jnp.float32)


def main(conf=Conf()):
    rng = np.random.default_rng(0)
    coupling = rng.normal(size=conf.spins)
    params = init(conf, jax.random.PRNGKey(2))
    print("devices:", jax.devices()[0].platform, "| params:", sum(x.size for x in jax.tree.leaves(params)))
    step = make_step(conf)
    for t in range(conf.steps):
        params, loss, norm = step(params, *chains(rng, conf, coupling))
        if t % 40 == 0 or t == conf.steps - 1:
            print(f"step {t:3d}: mse={loss:.4f}, gradnorm={norm:.3f}")


if __name__ == "__main__":
    main()
