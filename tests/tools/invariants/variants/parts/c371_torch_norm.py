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
    blob = torch.load("beats.pt")
    x, y = blob["x"], blob["y"]
    x = (x - x.mean(dim=0, keepdim=True)) / x.std(dim=0, keepdim=True)  # FAULT C371 (low)
    ds = TensorDataset(x, y)
    a, b = random_split(ds, [800, 200])
    net = fit(Net(30, 4), DataLoader(a, 32, shuffle=True))
    print(score(net, DataLoader(b, 100)))
main()
