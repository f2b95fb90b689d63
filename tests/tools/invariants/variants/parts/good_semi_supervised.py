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
    z = torch.load("m.pt")
    x, y = z["x"], z["y"]
    perm = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    lab, unl, te = perm[:100], perm[100:900], perm[900:]
    net = Net(20, 5)
    opt = torch.optim.Adam(net.parameters())
    for _ in range(100):
        i, j = lab[torch.randint(100, (32,))], unl[torch.randint(800, (64,))]
        with torch.no_grad():
            pseudo = net(x[j]).argmax(1)
        loss = nn.functional.cross_entropy(net(x[i]), y[i]) + nn.functional.cross_entropy(net(x[j]), pseudo)
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        print("test", (net(x[te]).argmax(1) == y[te]).float().mean())
main()
