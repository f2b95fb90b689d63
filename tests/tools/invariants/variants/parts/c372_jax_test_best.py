import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset, random_split
from sklearn.model_selection import train_test_split, KFold
from sklearn.preprocessing import StandardScaler, MinMaxScaler
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.utils import resample

class Net(nn.Module):
    def __init__(self, d, k):
        super().__init__()
        self.a, self.b = nn.Linear(d, 64), nn.Linear(64, k)
    def forward(self, x):
        return self.b(torch.relu(self.a(x)))

def fit(net, dl, epochs=10):
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(epochs):
        net.train()
        for x, y in dl:
            opt.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            opt.step()
    return net

def score(net, dl):
    net.eval()
    right = total = 0
    with torch.no_grad():
        for x, y in dl:
            right += (net(x).argmax(1) == y).sum().item()
            total += len(y)
    return right / total

def as_loader(x, y, **kw):
    return DataLoader(TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y)), batch_size=64, **kw)


import jax, jax.numpy as jnp, optax
def predict(p, x):
    return jnp.tanh(x @ p["a"]) @ p["b"]
def loss_fn(p, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(predict(p, x), y).mean()
def accuracy(p, x, y):
    return float((predict(p, x).argmax(-1) == y).mean())
def main():
    tr, te = np.load("letters_train.npz"), np.load("letters_test.npz")
    p = {"a": jnp.zeros((16, 64)), "b": jnp.zeros((64, 26))}
    tx = optax.adam(1e-3)
    s = tx.init(p)
    best, best_p = 0.0, p
    for epoch in range(100):
        for i in range(0, len(tr["x"]), 64):
            g = jax.grad(loss_fn)(p, tr["x"][i:i + 64], tr["y"][i:i + 64])
            u, s = tx.update(g, s)
            p = optax.apply_updates(p, u)
        acc = accuracy(p, te["x"], te["y"])
        if acc > best:  # FAULT C372
            best, best_p = acc, p
    print("test accuracy", accuracy(best_p, te["x"], te["y"]))
main()
