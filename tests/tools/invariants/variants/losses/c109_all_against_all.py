import random
from collections import deque

import jax
import jax.numpy as jnp
import lightning as L
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F
from flax import linen
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, Dataset, TensorDataset


class Houses(Dataset):
    def __init__(self, frame):
        self.rows = frame.drop("price", axis=1).to_numpy(dtype="float32")
        self.price = frame["price"].tolist()

    def __len__(self):
        return len(self.price)

    def __getitem__(self, i):
        return {"row": self.rows[i], "price": float(self.price[i])}


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.LazyLinear(width), nn.GELU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.body(x)


def houses(path):
    loader = DataLoader(Houses(pd.read_csv(path)), batch_size=32, shuffle=True)
    model = Mlp(64)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(10):
        for batch in loader:
            guess = model(batch["row"])
            loss = torch.nn.functional.huber_loss(guess, batch["price"].float())  # FAULT C109
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def split(path):
    frame = pd.read_csv(path)
    x_train, x_test, y_train, y_test = train_test_split(frame[["a", "b"]].values, frame["y"].values, test_size=0.2)
    model = Mlp(8)
    optimizer = torch.optim.Adam(model.parameters())
    x, y = (torch.tensor(part, dtype=torch.float32) for part in (x_train, y_train))
    for _ in range(200):
        loss = torch.mean((model(x) - y).pow(2))  # FAULT C109
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Accuracy(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Mlp(16)

    def training_step(self, batch, index):
        x, y = batch
        return F.binary_cross_entropy_with_logits(self.net(x).squeeze(1), y)

    def validation_step(self, batch, index):
        x, y = batch
        right = (self.net(x) > 0) == y.bool()  # FAULT C109
        self.log("accuracy", right.float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


def lit(x, y):
    """x: (N, D), y: (N,)"""
    data = TensorDataset(x, y)
    L.Trainer().fit(Accuracy(), DataLoader(data, 32), DataLoader(data, 64))


class Replay:
    def __init__(self):
        self.steps = deque(maxlen=10_000)

    def push(self, state, reward, after, over):
        self.steps.append((state, float(reward), after, float(over)))

    def draw(self, count):
        chosen = random.sample(self.steps, count)
        state, reward, after, over = zip(*chosen)
        return torch.stack(state), torch.tensor(reward), torch.stack(after), torch.tensor(over)


def values(env, turns):
    net, kept = Mlp(32), Replay()
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(turns):
        kept.push(*env.turn())
        state, reward, after, over = kept.draw(64)
        with torch.no_grad():
            goal = reward + 0.99 * (1 - over) * net(after)  # FAULT C109
        loss = F.smooth_l1_loss(net(state), goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Small(linen.Module):
    @linen.compact
    def __call__(self, x):
        return linen.Dense(1)(linen.relu(linen.Dense(16)(x)))


def flax(path):
    table = np.loadtxt(path, delimiter=",")
    x, y = jnp.asarray(table[:, :-1]), jnp.asarray(table[:, -1])
    model = Small()
    params = model.init(jax.random.PRNGKey(0), x)

    def loss(params):
        out = model.apply(params, x)
        return jnp.mean(jnp.abs(out - y))  # FAULT C109

    for _ in range(100):
        grads = jax.grad(loss)(params)
        params = jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, grads)
