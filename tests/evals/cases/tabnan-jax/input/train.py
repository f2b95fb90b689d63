"""Ward readmission model on lab panels with many unmeasured values."""
import jax
import jax.numpy as jnp
import numpy as np
import optax

COLS = ["hb", "crp", "na", "k", "crea", "lact", "tsh", "ferr"]
MISSING = np.array([0.02, 0.1, 0.03, 0.03, 0.05, 0.62, 0.81, 1.0])


def panel(n, seed):
    g = np.random.default_rng(seed)
    full = g.normal(0, 1, (n, len(COLS)))
    risk = 1.3 * full[:, 1] - 0.9 * full[:, 0] + 0.8 * np.maximum(full[:, 4], 0) + 1.1 * full[:, 5] - 1.2
    y = (g.random(n) < 1 / (1 + np.exp(-risk))).astype(np.float32)
    x = np.where(g.random(full.shape) < MISSING, np.nan, full).astype(np.float32)
    return x, y


def fit_scaler(x):
    seen = ~np.isnan(x)
    count = seen.sum(0)
    mean = np.nansum(x, 0) / np.maximum(count, 1)
    std = np.sqrt(np.nansum((x - mean) ** 2, 0) / np.maximum(count, 1))
    return mean, np.where(std > 0, std, 1.0)


def encode(x, scaler):
    seen = ~np.isnan(x)
    z = np.where(seen, (np.where(seen, x, 0.0) - scaler[0]) / scaler[1], 0.0)
    return np.concatenate([z, seen], 1).astype(np.float32)


def init(key, sizes):
    keys = jax.random.split(key, len(sizes))
    return [(jax.random.normal(k, (a, b)) * np.sqrt(2 / a), jnp.zeros(b)) for k, a, b in zip(keys, sizes, sizes[1:])]


def logit(params, f):
    for w, b in params[:-1]:
        f = jax.nn.relu(f @ w + b)
    w, b = params[-1]
    return (f @ w + b)[:, 0]


def nll(params, f, y):
    return optax.sigmoid_binary_cross_entropy(logit(params, f), y).mean()


def auc(score, y):
    pos, neg = score[y == 1], score[y == 0]
    return float((pos[:, None] > neg[None]).mean())


def main():
    x, y = panel(3000, 0)
    xt, yt = panel(800, 1)
    with np.errstate(all="ignore"):
        col_mean, col_max = np.nanmean(x, 0), np.nanmax(x, 0)
    print("column   mean     max      missing")
    for c, a, b, m in zip(COLS, col_mean, col_max, np.isnan(x).mean(0)):
        print(f"{c:6s} {a:7.3f}  {b:7.3f}   {m:6.1%}")
    print(f"nan cells: {int(np.isnan(x).sum())} of {x.size}, rows with nan: {np.isnan(x).any(1).mean():.1%}")
    scaler = fit_scaler(x)
    f, ft = encode(x, scaler), encode(xt, scaler)
    params = init(jax.random.PRNGKey(0), [f.shape[1], 32, 1])
    tx = optax.adamw(3e-3, weight_decay=1e-3)
    state = tx.init(params)

    @jax.jit
    def update(params, state, fb, yb):
        v, g = jax.value_and_grad(nll)(params, fb, yb)
        u, state = tx.update(g, state, params)
        return optax.apply_updates(params, u), state, v

    rng, lact_col = np.random.default_rng(2), COLS.index("lact")
    for it in range(361):
        ids = rng.integers(0, len(f), 64)
        params, state, v = update(params, state, f[ids], y[ids])
        if it % 40 == 0:
            s = np.asarray(logit(params, ft))
            ferr = s[~np.isnan(xt[:, -1])]
            print(f"it {it:3d} nll {float(v):.4f} test_nll {float(nll(params, ft, yt)):.4f} auc {auc(s, yt):.3f} "
                  f"auc[lact measured] {auc(s[~np.isnan(xt[:, lact_col])], yt[~np.isnan(xt[:, lact_col])]):.3f} "
                  f"auc[ferr measured] {auc(ferr, yt[~np.isnan(xt[:, -1])]) if len(ferr) else float('nan'):.3f}")


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("default")
    main()
