"""Small autoregressive SMILES generator with scheduled sampling."""
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import yaml

from seqdata import ALPHABET, PAD, batches

VOCAB = len(ALPHABET)


def glorot(key, shape):
    return jax.random.normal(key, shape) * np.sqrt(2.0 / sum(shape))


def init(key, hidden, embed):
    ks = jax.random.split(key, 6)
    return {
        "emb": jax.random.normal(ks[0], (VOCAB, embed)) * 0.1,
        "gru1": {"wx": glorot(ks[1], (embed, 3 * hidden)), "wh": glorot(ks[2], (hidden, 3 * hidden)),
                 "b": jnp.zeros(3 * hidden)},
        "gru2": {"wx": glorot(ks[3], (hidden, 3 * hidden)), "wh": glorot(ks[4], (hidden, 3 * hidden)),
                 "b": jnp.zeros(3 * hidden)},
        "head": {"w": glorot(ks[5], (hidden, VOCAB)), "b": jnp.zeros(VOCAB)},
    }


def gru_cell(p, h, x):
    gx = x @ p["wx"] + p["b"]
    gh = h @ p["wh"]
    rx, zx, nx = jnp.split(gx, 3, -1)
    rh, zh, nh = jnp.split(gh, 3, -1)
    r, z = jax.nn.sigmoid(rx + rh), jax.nn.sigmoid(zx + zh)
    return (1 - z) * jnp.tanh(nx + r * nh) + z * h


def rollout(params, tokens, key, tf_ratio, hidden):
    """Logits for tokens[:, 1:]; with prob 1 - tf_ratio the model eats its own sample."""
    b, length = tokens.shape

    def step(carry, inp):
        h1, h2, prev, key = carry
        truth, t = inp
        key, k_mix, k_draw = jax.random.split(key, 3)
        x = params["emb"][prev]
        h1 = gru_cell(params["gru1"], h1, x)
        h2 = gru_cell(params["gru2"], h2, h1)
        logits = h2 @ params["head"]["w"] + params["head"]["b"]
        drawn = jax.random.categorical(k_draw, logits)
        use_truth = jax.random.bernoulli(k_mix, tf_ratio, (b,))
        nxt = jnp.where(use_truth, truth, drawn)
        return (h1, h2, nxt, key), logits

    h0 = jnp.zeros((b, hidden))
    xs = (tokens[:, 1:].T, jnp.arange(length - 1))
    _, logits = jax.lax.scan(step, (h0, h0, tokens[:, 0], key), xs)
    return logits.transpose(1, 0, 2)


def loss_fn(params, tokens, key, tf_ratio, hidden):
    logits = rollout(params, tokens, key, tf_ratio, hidden)
    target = tokens[:, 1:]
    mask = (target != PAD).astype(jnp.float32)
    nll = optax.softmax_cross_entropy_with_integer_labels(logits, target)
    return (nll * mask).sum() / mask.sum()


@partial(jax.jit, static_argnames=("tx", "tf_ratio", "hidden"))
def train_step(params, opt_state, tokens, key, tx, tf_ratio, hidden):
    loss, grads = jax.value_and_grad(loss_fn)(params, tokens, key, tf_ratio, hidden)
    updates, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss, optax.global_norm(grads)


def main():
    with open("config.yaml") as f:
        cfg = yaml.safe_load(f)
    tf = cfg["teacher_forcing"]
    key = jax.random.PRNGKey(cfg["seed"])
    params = init(key, cfg["hidden"], cfg["embed"])
    n_par = sum(p.size for p in jax.tree_util.tree_leaves(params))
    tx = optax.adam(cfg["lr"])
    opt_state = tx.init(params)
    stream = batches(cfg["batch"], cfg["max_len"], cfg["seed"])
    print(f"params={n_par} batch={cfg['batch']} max_len={cfg['max_len']} device={jax.devices()[0].platform}")
    t_start, n_tok = time.time(), 0
    for step in range(1, cfg["steps"] + 1):
        tokens = next(stream)
        frac = (step - 1) / (cfg["steps"] - 1)
        ratio = tf["start"] + frac * (tf["end"] - tf["start"])
        key, sub = jax.random.split(key)
        t0 = time.time()
        params, opt_state, loss, gnorm = train_step(params, opt_state, tokens, sub, tx=tx,
                                                    tf_ratio=ratio, hidden=cfg["hidden"])
        loss = float(loss)
        n_tok += int((tokens != PAD).sum())
        print(f"step={step:<3d} loss={loss:.4f} gnorm={float(gnorm):.3f} tf={ratio:.3f} "
              f"ms={1000 * (time.time() - t0):.1f}", flush=True)
    took = time.time() - t_start
    print(f"finished steps={cfg['steps']} seconds={took:.1f} tokens_per_s={n_tok / took:.0f}")


if __name__ == "__main__":
    main()
