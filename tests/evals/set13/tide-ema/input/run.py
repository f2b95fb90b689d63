import jax, jax.numpy as jnp, numpy as np, optax
import flax.linen as nn

DECAY, BATCH, EPOCHS, LR = 0.999, 32, 40, 3e-3
z = dict(np.load("gauge.npz"))


class Gauge(nn.Module):
    @nn.compact
    def __call__(self, x):
        for w in (64, 64):
            x = nn.tanh(nn.Dense(w)(x))
        return nn.Dense(1)(x)[:, 0]


net = Gauge()
params = net.init(jax.random.key(0), z["x"][:1])
tx = optax.adam(LR)
opt_state = tx.init(params)
average = jax.tree.map(jnp.zeros_like, params)     # zero start, de-biased when it is read


@jax.jit
def epoch_fn(params, opt_state, average, xb, yb):
    def one(carry, b):
        params, opt_state, average = carry
        loss, g = jax.value_and_grad(lambda p: jnp.mean((net.apply(p, b[0]) - b[1]) ** 2))(params)
        up, opt_state = tx.update(g, opt_state, params)
        params = optax.apply_updates(params, up)
        average = jax.tree.map(lambda a, p: DECAY * a + (1 - DECAY) * p, average, params)
        return (params, opt_state, average), loss
    return jax.lax.scan(one, (params, opt_state, average), (xb, yb))


@jax.jit
def scores(params, average, step):
    unbiased = jax.tree.map(lambda a: a / (1 - DECAY ** step), average)
    return [jnp.mean((net.apply(p, z["xv"]) - z["yv"]) ** 2) for p in (params, unbiased)]


rng = np.random.default_rng(0)
n = len(z["x"]) // BATCH
for ep in range(1, EPOCHS + 1):
    o = rng.permutation(len(z["x"]))[: n * BATCH]
    (params, opt_state, average), l = epoch_fn(params, opt_state, average, z["x"][o].reshape(n, BATCH, -1), z["y"][o].reshape(n, BATCH))
    raw, avg = scores(params, average, ep * n)
    if ep % 4 == 0 or ep < 4:
        print(f"epoch {ep:2d} train {l.mean():.4f} | val raw {raw:.4f} averaged {avg:.4f}", flush=True)
