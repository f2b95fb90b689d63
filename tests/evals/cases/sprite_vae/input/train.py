"""VAE on 16x16 sprites in flax NNX. The weight of the KL term rises linearly from 0 over the first half."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

EPOCHS, BATCH, LATENT, BETA_MAX = 16, 64, 6, 1.0


def sprites(n, seed, size=16):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:size, 0:size]
    out = np.zeros((n, size * size), np.float32)
    for i in range(n):
        cx, cy, r = rng.uniform(5, 11), rng.uniform(5, 11), rng.uniform(2.0, 4.0)
        if rng.random() < 0.5:
            mask = (xx - cx) ** 2 + (yy - cy) ** 2 < r * r
        else:
            mask = (np.abs(xx - cx) < r) & (np.abs(yy - cy) < r * 0.7)
        out[i] = mask.reshape(-1)
    return out


class VAE(nnx.Module):
    def __init__(self, rngs):
        self.enc1 = nnx.Linear(256, 128, rngs=rngs)
        self.enc2 = nnx.Linear(128, 2 * LATENT, rngs=rngs)
        self.dec1 = nnx.Linear(LATENT, 128, rngs=rngs)
        self.dec2 = nnx.Linear(128, 256, rngs=rngs)

    def encode(self, x):
        mu, logvar = jnp.split(self.enc2(nnx.gelu(self.enc1(x))), 2, -1)
        return mu, jnp.clip(logvar, -12, 6)

    def decode(self, z):
        return self.dec2(nnx.gelu(self.dec1(z)))


def terms(model, x, key):
    mu, logvar = model.encode(x)
    z = mu + jnp.exp(0.5 * logvar) * jax.random.normal(key, mu.shape)
    rec = optax.sigmoid_binary_cross_entropy(model.decode(z), x).sum(-1).mean()
    kl_dims = 0.5 * (jnp.exp(logvar) + mu**2 - 1.0 - logvar).mean(0)
    return rec, kl_dims


@nnx.jit
def train_step(model, opt, x, key, beta):
    def loss_fn(m):
        rec, kl_dims = terms(m, x, key)
        return rec + beta * kl_dims.sum(), (rec, kl_dims.sum())
    (loss, aux), grads = nnx.value_and_grad(loss_fn, has_aux=True)(model)
    opt.update(model, grads)
    return loss, *aux


@nnx.jit
def eval_step(model, x, key):
    rec, kl_dims = terms(model, x, key)
    return rec, kl_dims


def main():
    x_tr, x_va = sprites(2048, 0), sprites(512, 1)
    model = VAE(nnx.Rngs(0))
    opt = nnx.Optimizer(model, optax.adam(2e-3), wrt=nnx.Param)
    key, rng = jax.random.key(3), np.random.default_rng(0)
    steps = len(x_tr) // BATCH
    anneal, step = EPOCHS * steps // 2, 0
    for epoch in range(1, EPOCHS + 1):
        order, acc = rng.permutation(len(x_tr)), []
        for i in range(steps):
            beta = jnp.asarray(BETA_MAX * min(1.0, step / anneal))
            key, k = jax.random.split(key)
            acc.append([float(v) for v in train_step(model, opt, x_tr[order[i * BATCH:(i + 1) * BATCH]], k, beta)])
            step += 1
        loss, rec, kl = np.mean(acc, 0)
        key, k = jax.random.split(key)
        v_rec, v_dims = eval_step(model, x_va, k)
        v_kl = float(v_dims.sum())
        print(f"epoch={epoch:02d} beta={float(beta):.3f} loss={loss:.2f} recon={rec:.2f} kl={kl:.2f} "
              f"valid_recon={float(v_rec):.2f} valid_kl={v_kl:.2f} valid_neg_elbo={float(v_rec) + v_kl:.2f} "
              f"active_dims={int((v_dims > 0.1).sum())}/{LATENT}", flush=True)


if __name__ == "__main__":
    main()
