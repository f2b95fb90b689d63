"""Toy galaxy cut-outs: 0 = elliptical, 1 = spiral, 2 = ring."""
import numpy as np

SIZE = 24


def _grid():
    ax = np.linspace(-1.0, 1.0, SIZE)
    yy, xx = np.meshgrid(ax, ax, indexing="ij")
    return xx, yy


def render(kind, rng):
    xx, yy = _grid()
    cx, cy = rng.uniform(-0.15, 0.15, 2)
    ang = rng.uniform(0, np.pi)
    q = rng.uniform(0.6, 0.95)
    x = (xx - cx) * np.cos(ang) + (yy - cy) * np.sin(ang)
    y = (-(xx - cx) * np.sin(ang) + (yy - cy) * np.cos(ang)) / q
    r = np.sqrt(x**2 + y**2) + 1e-6
    phi = np.arctan2(y, x)
    core = np.exp(-((r / 0.22) ** 2))
    if kind == 0:
        img = np.exp(-((r / 0.4) ** 1.2))
    elif kind == 1:
        arms = 0.5 * (1 + np.cos(2 * phi - 7.0 * r))
        img = 0.6 * core + arms * np.exp(-r / 0.5)
    else:
        img = 0.4 * core + np.exp(-(((r - 0.55) / 0.12) ** 2))
    flux = rng.uniform(0.7, 1.3)
    return flux * img + 0.18 * rng.normal(size=img.shape)


def make_split(n, seed):
    """Pixel counts in detector units (sky level about 90, gain 40)."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    images = np.stack([render(k, rng) for k in labels]).astype(np.float32)
    images = 90.0 + 40.0 * images
    return images[..., None] / 25.0, labels.astype(np.int32)
