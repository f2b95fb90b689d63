"""Read the needle angle of an analogue gauge - plain JAX, hand-rolled Adam."""
import jax
import jax.numpy as jnp
import numpy as np

BATCH, STEPS, LR = 32, 1200, 3e-3
SIZES = (64, 96, 96, 2)


def init_params(key):
    params = []
    for a, b in zip(SIZES[:-1], SIZES[1:]):
        key, sub = jax.random.split(key)
        params.append({"w": jax.random.normal(sub, (a, b)) * np.sqrt(2 / a), "b": jnp.zeros(b)})
    return params


def forward(params, x):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def pairwise_penalty(z):
    """Readings of a batch should spread over the dial: repel outputs that sit close together."""
    diff = z[:, None, :] - z[None, :, :]
    dist = jnp.sqrt(jnp.sum(diff ** 2, axis=-1))
    return jnp.mean(jnp.exp(-dist / 0.1))


def objective(params, x, target):
    z = forward(params, x)
    fit = jnp.mean(jnp.sum((z - target) ** 2, -1))
    return fit + 0.02 * pairwise_penalty(z), fit


def dial_images(rng, n):
    ang = rng.uniform(0.2, 2 * np.pi - 0.2, n)
    grid = np.linspace(-1, 1, 8)
    gx, gy = np.meshgrid(grid, grid)
    along = gx[None] * np.cos(ang)[:, None, None] + gy[None] * np.sin(ang)[:, None, None]
    across = -gx[None] * np.sin(ang)[:, None, None] + gy[None] * np.cos(ang)[:, None, None]
    img = np.exp(-(across / 0.25) ** 2) * (along > 0) + 0.1 * rng.normal(size=(n, 8, 8))
    return (jnp.asarray(img.reshape(n, -1), jnp.float32),
            jnp.asarray(np.stack([np.cos(ang), np.sin(ang)], -1), jnp.float32))


@jax.jit
def train_step(params, m, v, t, x, y):
    (obj, fit), g = jax.value_and_grad(objective, has_aux=True)(params, x, y)
    m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
    v = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b * b, v, g)
    upd = lambda p, a, b: p - LR * (a / (1 - 0.9 ** t)) / (jnp.sqrt(b / (1 - 0.999 ** t)) + 1e-8)
    return jax.tree.map(upd, params, m, v), m, v, obj, fit


def main():
    rng = np.random.default_rng(0)
    params = init_params(jax.random.PRNGKey(4))
    m = v = jax.tree.map(jnp.zeros_like, params)
    for t in range(1, STEPS + 1):
        x, y = dial_images(rng, BATCH)
        params, m, v, obj, fit = train_step(params, m, v, float(t), x, y)
        if t == 1 or t % 100 == 0:
            print(f"t={t:<5d} objective={float(obj):<10.5f} fit={float(fit):<10.5f} penalty={50 * float(obj - fit):.5f}")


if __name__ == "__main__":
    main()
