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


from sklearn.decomposition import PCA
def load(path):
    z = np.load(path)
    x = PCA(n_components=20).fit_transform(z["spectra"])  # FAULT C371
    return x, z["kind"]
def main():
    x, y = load("minerals.npz")
    k = KFold(n_splits=4, shuffle=True)
    s = []
    for a, b in k.split(x):
        net = fit(Net(20, 5), as_loader(x[a], y[a], shuffle=True))
        s.append(score(net, as_loader(x[b], y[b])))
    print(np.mean(s))
main()
