import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.preprocessing import StandardScaler


def batch_norm(x, gamma, beta):
    mu, var = x.mean(0), x.var(0, unbiased=False)
    return gamma * (x - mu) / torch.sqrt(var + 1e-5) + beta


class LayerNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.g = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return self.g * (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)


class Seg(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 5, 3, padding=1)
        self.k = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x):
        s = self.c(x)
        key = self.k(x).flatten(2).softmax(-1)
        return s, key


def dice(scores, labels):
    p = scores.softmax(1)
    t = F.one_hot(labels, 5).permute(0, 3, 1, 2).float()
    return 1 - (2 * (p * t).sum((0, 2, 3)) / (p + t).sum((0, 2, 3))).mean()


def dice_last(scores, labels):
    p = scores.permute(0, 2, 3, 1).softmax(-1)
    t = F.one_hot(labels, 5).float()
    return 1 - (2 * (p * t).sum((0, 1, 2)) / (p + t).sum((0, 1, 2))).mean()


def spectra():
    df = pd.read_csv("spectra.csv")
    x = df.iloc[:, 1:].to_numpy()
    x = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
    waves = [f"w{i}" for i in range(100)]
    z = df[waves].to_numpy()
    z = (z - z.mean(1, keepdims=True)) / z.std(1, keepdims=True)
    z2 = df[["t1", "t2", "t3"]].to_numpy()
    z2 = (z2 - z2.mean(1, keepdims=True)) / z2.std(1, keepdims=True)
    cols = ["age", "income"]
    t = df[cols].to_numpy()
    t = (t - t.mean(0)) / t.std(0)
    u = (df[cols] - df[cols].mean()) / df[cols].std()
    return x, z, z2, t, u


def train(loader):
    m = Seg()
    opt = torch.optim.Adam(m.parameters())
    for img, lab in loader:
        s, key = m(img)
        loss = dice(s, lab) + dice_last(s, lab) + F.nll_loss(F.log_softmax(s, 1), lab)
        acc = (s.softmax(1).argmax(1) == lab).float().mean()
        loss.backward()
        opt.step()
        opt.zero_grad()


def softmax_tokens(net, x, y):
    logits = net(x)
    b, t, v = logits.shape
    logp = F.log_softmax(logits, dim=-1)
    return F.nll_loss(logp.view(b * t, v), y.reshape(-1)) + F.nll_loss(logp.transpose(1, 2), y)


@jax.jit
def jax_loss(params, x, y):
    h = jnp.tanh(x @ params["w1"] + params["b1"])
    pred = (h @ params["w2"] + params["b2"]).squeeze(-1)
    return jnp.mean((pred - y) ** 2)


def jax_main():
    k = jax.random.PRNGKey(0)
    params = {"w1": jax.random.normal(k, (4, 8)), "b1": jnp.zeros(8), "w2": jax.random.normal(jax.random.fold_in(k, 1), (8, 1)), "b2": jnp.zeros(1)}
    t = np.loadtxt("a.txt")
    x, y = t[:, :4], t[:, 4]
    y2 = t[:, 4:5]
    for i in range(10):
        g = jax.grad(jax_loss)(params, x, y)
        params = jax.tree_util.tree_map(lambda p, q: p - 0.1 * q, params, g)
    pred = jnp.tanh(x @ params["w1"]) @ params["w2"]
    return jnp.mean((pred - y2) ** 2), jnp.mean((pred[:, 0] - y) ** 2), jnp.mean((pred - y[:, None]) ** 2)
