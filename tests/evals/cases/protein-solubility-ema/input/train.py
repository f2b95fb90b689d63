import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

AMINO = "ACDEFGHIKLMNPQRSTVWY"
HYDROPHOBIC = set("AVILMFWY")


def make_sequences(n, length, rng):
    seqs = rng.integers(0, len(AMINO), (n, length))
    hyd = np.array([a in HYDROPHOBIC for a in AMINO])[seqs].mean(1)
    soluble = (hyd + rng.normal(0, 0.05, n) < 0.4).astype(np.float32)
    return seqs, soluble


class SolubilityNet(nn.Module):
    @nn.compact
    def __call__(self, ids):
        x = nn.Embed(len(AMINO), 16)(ids)
        x = nn.relu(nn.Conv(32, (5,))(x))
        x = x.mean(axis=1)
        return nn.Dense(1)(nn.relu(nn.Dense(32)(x)))[:, 0]


model = SolubilityNet()
tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(3e-3))


def bce(params, ids, y):
    return optax.sigmoid_binary_cross_entropy(model.apply(params, ids), y).mean()


def train_step(params, opt_state, ids, y):
    loss, grads = jax.value_and_grad(bce)(params, ids, y)
    updates, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


train_step = jax.jit(train_step, donate_argnums=(0, 1))


@jax.jit
def ema_update(ema, params, decay=0.99):
    return jax.tree.map(lambda e, p: decay * e + (1 - decay) * p, ema, params)


@jax.jit
def accuracy(params, ids, y):
    return jnp.mean((model.apply(params, ids) > 0) == (y > 0.5))


def main():
    rng = np.random.default_rng(2)
    ids, y = make_sequences(2000, 60, rng)
    val_ids, val_y = make_sequences(400, 60, rng)
    params = model.init(jax.random.key(0), ids[:1])
    opt_state = tx.init(params)
    ema = params
    print(f"devices={jax.devices()} params={sum(x.size for x in jax.tree.leaves(params))}")
    print(f"before training: val_acc={accuracy(ema, val_ids, val_y):.3f}")
    for step in range(400):
        pick = rng.integers(0, len(ids), 64)
        params, opt_state, loss = train_step(params, opt_state, ids[pick], y[pick])
        ema = ema_update(ema, params)
        if step % 50 == 0:
            print(f"step={step} loss={loss:.4f} ema_val_acc={accuracy(ema, val_ids, val_y):.3f}")


if __name__ == "__main__":
    main()
