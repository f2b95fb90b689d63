import numpy as np
import torch

SLOSH_PERIOD_S = 73.0     # from the tuned-mass damper sheet


def read(path):
    table = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.float32)
    t, wind, sway = table.T
    return t, wind, sway


def features(t, wind, harmonics=3):
    turn = (t % SLOSH_PERIOD_S) / SLOSH_PERIOD_S
    f = [(wind - wind.mean()) / wind.std()]
    for k in range(1, harmonics + 1):
        f += [np.sin(2 * np.pi * k * turn), np.cos(2 * np.pi * k * turn)]
    return torch.from_numpy(np.stack(f, 1))
