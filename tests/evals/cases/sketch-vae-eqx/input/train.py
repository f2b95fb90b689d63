import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax

from settings import S

PIX = 64


def strokes(n, seed):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:8, 0:8]
    th = rng.uniform(0, np.pi, (n, 1, 1))
    off = rng.uniform(-2, 2, (n, 1, 1))
    d = (xx - 3.5) * np.cos(th) + (yy - 3.5) * np.sin(th) - off
    img = np.exp(-(d ** 2) / 1.2) + 0.1 * rng.normal(size=(n, 8, 8))
    return img.reshape(n, PIX).astype(np.float32)


class Vae(eqx.Module):
    enc: eqx.nn.MLP
    dec: eqx.nn.MLP

    def __init__(self, key):
        a, b = jr.split(key)
        self.enc = eqx.nn.MLP(PIX, 2 * S.latent, S.width, 2, key=a)
        self.dec = eqx.nn.MLP(S.latent, PIX, S.width, 2, key=b)

    def terms(self, x, key):
        mu, logvar = jnp.split(self.enc(x), 2)
        z = mu + jnp.exp(0.5 * logvar) * jr.normal(key, mu.shape)
        rec = 0.5 * jnp.sum((self.dec(z) - x) ** 2) / 0.1
        kl = 0.5 * jnp.sum(jnp.exp(logvar) + mu ** 2 - 1.0 - logvar)
        return rec, kl


opt = optax.adam(S.lr)


@eqx.filter_jit
def step(model, opt_state, x, key):
    @eqx.filter_value_and_grad(has_aux=True)
    def elbo(m):
        rec, kl = jax.vmap(m.terms)(x, jr.split(key, len(x)))
        return jnp.mean(rec + S.beta * kl), (rec.mean(), kl.mean())

    (loss, parts), grads = elbo(model)
    updates, opt_state = opt.update(grads, opt_state)
    return eqx.apply_updates(model, updates), opt_state, loss, parts


def prior_gap(model, data, key):
    """Mean distance from decoded prior draws to their nearest training image."""
    out = jax.vmap(model.dec)(jr.normal(key, (200, S.latent)))
    d = jnp.sum((out[:, None] - data[None, :500]) ** 2, -1)
    return float(jnp.sqrt(d.min(1)).mean())


def main():
    key = jr.key(6)
    key, k = jr.split(key)
    model = Vae(k)
    opt_state = opt.init(eqx.filter(model, eqx.is_array))
    data = jnp.asarray(strokes(3000, 0))
    order = np.random.default_rng(1)
    for epoch in range(S.epochs):
        S.anneal(epoch)
        rows = []
        perm = order.permutation(len(data))
        for i in range(0, len(perm) - S.batch, S.batch):
            key, k = jr.split(key)
            model, opt_state, loss, (rec, kl) = step(model, opt_state, data[perm[i : i + S.batch]], k)
            rows.append((float(rec), float(kl)))
        rec, kl = np.mean(rows, 0)
        key, k = jr.split(key)
        print(f"ep={epoch:02d} beta={S.beta:.2f} rec={rec:8.3f} kl={kl:9.3f} prior_gap={prior_gap(model, data, k):.3f}")


if __name__ == "__main__":
    main()
