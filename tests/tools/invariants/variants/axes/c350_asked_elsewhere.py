import math

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

NUMERIC = ["height", "weight", "price"]


class Rooms(Dataset):
    def __init__(self, frame):
        self.x = frame[NUMERIC].to_numpy(dtype=np.float32)
        self.kind = frame["kind"].to_numpy()

    def __len__(self):
        return len(self.kind)

    def __getitem__(self, index):
        return self.x[index], self.kind[index]


class CrossAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.kv, self.drop = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim), nn.Dropout(0.1)

    def forward(self, queries, memory):
        keys, values = self.kv(memory).chunk(2, dim=-1)
        scores = torch.matmul(self.q(queries), keys.transpose(1, 2)) / math.sqrt(keys.size(-1))
        weights = F.softmax(scores, dim=1)  # FAULT C350
        return torch.bmm(self.drop(weights), values)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 5))

    def forward(self, x):
        return self.net(x)


class Tagger(nn.Module):
    def __init__(self, words, tags):
        super().__init__()
        self.emb, self.rnn = nn.Embedding(words, 32), nn.LSTM(32, 96, batch_first=True)
        self.out = nn.Linear(96, tags)

    def forward(self, ids):
        h, _ = self.rnn(self.emb(ids))
        return self.out(h)


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Conv3d(1, 8, 3, padding=1)
        self.head = nn.Conv3d(8, 4, 1)

    def forward(self, volume):
        return self.head(F.relu(self.body(volume)))


def overlap(scores, labels):
    p = torch.softmax(scores, 2)  # FAULT C350
    wanted = F.one_hot(labels, 4).permute(0, 4, 1, 2, 3)
    return 1 - (p * wanted).mean()


def cosine(images, texts):
    a = images / images.norm(dim=1, keepdim=True)
    b = F.normalize(texts, dim=1)
    c, d = F.normalize(images, dim=0), F.normalize(texts, dim=0)  # FAULT C350
    return a @ b.T + c @ d.t()


def evaluate(model, loader):
    model.eval()
    outputs, kinds = [], []
    with torch.no_grad():
        for x, kind in loader:
            outputs.append(model(x))
            kinds.append(kind)
    shares = torch.softmax(torch.cat(outputs), dim=0)  # FAULT C350
    return (shares.argmax(dim=1) == torch.cat(kinds)).float().mean()


def main(path):
    frame = pd.read_csv(path).dropna()
    train, test = frame[:800], frame[800:]
    values = frame[NUMERIC].values
    values = (values - values.mean(axis=1, keepdims=True)) / values.std(axis=1, keepdims=True)  # FAULT C350
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters())
    for x, kind in DataLoader(Rooms(train), batch_size=16, shuffle=True):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), kind)
        loss.backward()
        optimizer.step()
    print(evaluate(model, DataLoader(Rooms(test), batch_size=64)), values.shape)


def tag(loader):
    model = Tagger(1000, 9)
    optimizer = torch.optim.AdamW(model.parameters())
    for ids, tags in loader:
        logp = F.log_softmax(model(ids), dim=1)  # FAULT C350
        loss = F.nll_loss(logp.reshape(-1, 9), tags.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main("rooms.csv")
