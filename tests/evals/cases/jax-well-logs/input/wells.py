import numpy as onp


def well_logs(n, seed):
    """gamma ray, density, resistivity, sonic, depth -> porosity"""
    r = onp.random.default_rng(seed)
    x = r.normal(size=(n, 5))
    por = 0.5 * onp.tanh(x[:, 1]) - 0.35 * x[:, 0] * x[:, 3] + 0.3 * onp.sin(2 * x[:, 2]) + 0.1 * x[:, 4]
    return x.astype("float32"), (por + 0.05 * r.normal(size=n)).astype("float32")
