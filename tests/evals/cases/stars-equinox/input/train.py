import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax

from reviews import PAD, load_reviews

N_STARS = 5
HP = dict(vocab=120, dim=24, hidden=48, lr=4e-3, steps=300, batch=128, smoothing=0.0, seed=4)


class StarModel(eqx.Module):
    table: jax.Array
    up: eqx.nn.Linear
    down: eqx.nn.Linear

    def __init__(self, key):
        a, b, c = jr.split(key, 3)
        self.table = jr.normal(a, (HP["vocab"], HP["dim"])) * 0.1
        self.up = eqx.nn.Linear(HP["dim"], HP["hidden"], key=b)
        self.down = eqx.nn.Linear(HP["hidden"], N_STARS, key=c)

    def __call__(self, tokens):
        keep = (tokens != PAD)[:, None]
        bag = jnp.sum(self.table[tokens] * keep, 0) / jnp.maximum(keep.sum(), 1)
        return self.down(jax.nn.silu(self.up(bag * 4)))


def ce(model, tokens, stars):
    logp = jax.nn.log_softmax(jax.vmap(model)(tokens))
    target = jax.nn.one_hot(stars, N_STARS)
    target = target * (1 - HP["smoothing"]) + HP["smoothing"] / N_STARS
    return -jnp.mean(jnp.sum(target * logp, -1))


@eqx.filter_jit
def predict(model, tokens):
    return jax.vmap(model)(tokens).argmax(-1)


@functools.partial(eqx.filter_jit, donate="none")
def make_step(model, opt_state, tokens, stars, tx):
    value, grads = eqx.filter_value_and_grad(ce)(model, tokens, stars)
    updates, opt_state = tx.update(grads, opt_state, model)
    return eqx.apply_updates(model, updates), opt_state, value


def report(model, tokens, stars):
    pred = np.asarray(predict(model, tokens))
    counts = np.bincount(pred, minlength=N_STARS)
    print("prediction histogram by output unit:", counts.tolist())
    print("rating histogram:", {int(s): int((stars == s).sum()) for s in np.unique(stars)})
    return pred


def main():
    tr_x, tr_y = load_reviews(3000, seed=0)
    te_x, te_y = load_reviews(800, seed=1)
    key = jr.PRNGKey(HP["seed"])
    model = StarModel(key)
    tx = optax.adam(HP["lr"])
    opt_state = tx.init(eqx.filter(model, eqx.is_array))
    rng = np.random.default_rng(HP["seed"])
    for i in range(HP["steps"]):
        ids = rng.integers(0, len(tr_x), HP["batch"])
        model, opt_state, value = make_step(model, opt_state, tr_x[ids], tr_y[ids], tx)
        if i % 30 == 0 or i == HP["steps"] - 1:
            print(f"step={i} ce={float(value):.4f}")
    pred = report(model, te_x, te_y)
    for s in range(1, N_STARS + 1):
        sel = te_y == s
        print(f"  {s}-star reviews: mean output unit {pred[sel].mean():.2f}, exact {np.mean(pred[sel] == s):.3f}")
    print(f"test accuracy {np.mean(pred == te_y):.3f}")


if __name__ == "__main__":
    main()
