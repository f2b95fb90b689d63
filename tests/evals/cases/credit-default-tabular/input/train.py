"""Credit default: k-fold training of an MLP on customer features."""
import json
import numpy as np
import torch
from torch import nn

COLUMNS = ["age", "income", "utilisation", "n_accounts", "months_on_book", "n_delinq", "in_hardship_plan", "region_code"]


def load_customers(n=1500, seed=9):
    rng = np.random.default_rng(seed)
    age = rng.integers(21, 75, n)
    income = rng.lognormal(10.3, 0.4, n)
    util = rng.beta(2, 4, n)
    accts = rng.poisson(4, n)
    months = rng.integers(1, 180, n)
    delinq = rng.poisson(0.3, n)
    hardship = np.zeros(n)
    hardship[-12:] = 1                      # the programme began in the last month of the extract
    region = rng.integers(0, 9, n)
    z = 3 * util + 0.8 * delinq - 0.00002 * income - 0.5 + hardship
    y = rng.random(n) < 1 / (1 + np.exp(-z))
    return np.stack([age, income, util, accts, months, delinq, hardship, region], 1).astype(np.float32), y.astype(np.float32)


def scale(train, *others):
    mu, sd = train.mean(0), train.std(0)
    return [(part - mu) / sd for part in (train, *others)]


def mlp(width):
    return nn.Sequential(nn.Linear(len(COLUMNS), width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))


def fit_fold(x, y, train_idx, val_idx, epochs=6):
    xt, xv = scale(x[train_idx], x[val_idx])
    xt, xv = torch.from_numpy(xt), torch.from_numpy(xv)
    yt, yv = torch.from_numpy(y[train_idx]), torch.from_numpy(y[val_idx])
    model = mlp(32)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        losses = []
        for b in torch.randperm(len(xt)).split(64):
            loss = nn.functional.binary_cross_entropy_with_logits(model(xt[b]).squeeze(1), yt[b])
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        with torch.no_grad():
            val = nn.functional.binary_cross_entropy_with_logits(model(xv).squeeze(1), yv).item()
        yield {"epoch": epoch, "train": float(np.mean(losses)), "val": val}


def main():
    np.seterr(all="ignore")
    torch.manual_seed(9)
    x, y = load_customers()
    folds = np.array_split(np.arange(len(x)), 4)
    for k, val_idx in enumerate(folds):
        train_idx = np.concatenate([f for j, f in enumerate(folds) if j != k])
        for row in fit_fold(x, y, train_idx, val_idx):
            print(json.dumps({"fold": k, **row}))


if __name__ == "__main__":
    main()
