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

def main():
    d = np.load("soil.npz")
    x, y = torch.tensor(d["x"]), torch.tensor(d["y"])
    rng = np.random.default_rng(0)
    order = rng.permutation(len(x))
    tr, te = order[100:], order[:100]
    net = Net(12, 5)
    opt = torch.optim.Adam(net.parameters())
    for step in range(1000):
        rows = rng.choice(tr, 64)
        opt.zero_grad()
        nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
        opt.step()
        if step % 100 == 0:
            some = rng.permutation(tr)[:200]
            print("train", (net(x[some]).argmax(1) == y[some]).float().mean())
    accs = []
    for _ in range(200):
        again = rng.choice(te, len(te))
        accs.append((net(x[again]).argmax(1) == y[again]).float().mean().item())
    print("test", np.percentile(accs, [2.5, 97.5]))
main()
