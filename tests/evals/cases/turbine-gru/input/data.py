import numpy as np
import torch


def load_turbine(n=1500, length=60, seed=7):
    """Wind speed in, power of the next 10 minutes out. Sensor glitches are left in, as in production."""
    rng = np.random.default_rng(seed)
    t = np.arange(length)
    phase = rng.uniform(0, 2 * np.pi, (n, 1))
    freq = rng.uniform(0.05, 0.15, (n, 1))
    wind = 8 + 3 * np.sin(freq * t + phase) + rng.normal(0, 0.4, (n, length))
    temp = 12 + 4 * np.cos(0.02 * t + phase) + rng.normal(0, 0.3, (n, length))
    x = np.stack([(wind - 8) / 3, (temp - 12) / 4], -1)
    y = np.clip(wind[:, -10:].mean(1) / 8, 0, 1.6) ** 3
    y = (y - y.mean()) / y.std()
    glitch = rng.random(n) < 0.01
    y[glitch] += rng.choice([-1, 1], glitch.sum()) * rng.uniform(300, 900, glitch.sum())
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    cut = int(n * 0.85)
    ok = torch.tensor(~glitch[cut:])
    return (x[:cut], y[:cut]), (x[cut:][ok], y[cut:][ok])
