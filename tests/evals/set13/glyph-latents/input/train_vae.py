import jax
import jax.numpy as jnp
import numpy as np
import optax
import yaml

from vae import GlyphVAE


def terms(model, params, x, key):
    logits, mu, logvar = model.apply({"params": params}, x, key)
    rec = optax.sigmoid_binary_cross_entropy(logits, x).sum(-1).mean()
    kl = 0.5 * (jnp.exp(logvar) + mu**2 - 1 - logvar).sum(-1).mean()
    return rec, kl


def main():
    c = yaml.safe_load(open("vae.yaml"))
    bits = np.load(c["data"])["bits"]
    x = np.unpackbits(bits, axis=1)[:, :196].astype(np.float32)
    train, held = x[:2000], x[2000:]
    key = jax.random.PRNGKey(c["seed"])
    key, k0, k1 = jax.random.split(key, 3)
    model = GlyphVAE(c["latent"], c["hidden"])
    params = model.init(k0, train[:2], k1)["params"]
    tx = optax.adam(c["lr"])
    state = tx.init(params)

    @jax.jit
    def step(params, state, x, key, beta):
        def objective(p):
            rec, kl = terms(model, p, x, key)
            return rec + beta * kl, (rec, kl)

        (loss, parts), g = jax.value_and_grad(objective, has_aux=True)(params)
        up, state = tx.update(g, state, params)
        return optax.apply_updates(params, up), state, (loss, *parts)

    held_terms = jax.jit(lambda p, k: terms(model, p, held, k))
    rng = np.random.default_rng(c["seed"])
    for epoch in range(c["epochs"]):
        beta = min(1.0, max(0.0, (epoch - c["beta"]["hold"]) / c["beta"]["ramp"]))
        log = []
        for rows in rng.permutation(len(train)).reshape(-1, c["batch"]):
            key, k = jax.random.split(key)
            params, state, m = step(params, state, train[rows], k, beta)
            log.append(jax.device_get(m))
        loss, rec, kl = np.mean(log, 0)
        hr, hk = held_terms(params, k1)
        print(f"epoch {epoch:3d} beta {beta:.2f} loss {loss:8.3f} rec {rec:7.3f} kl {kl:7.3f} | held rec {hr:7.3f} kl {hk:7.3f} elbo {-(hr + hk):8.3f}", flush=True)


if __name__ == "__main__":
    main()
