"""Calls on lines of their own that do something: in place, to fill a cache, to try a device, to time an operation."""

import time

import numpy as np
import pandas as pd
import torch
from datasets import load_dataset
from torch import nn


def frame(path):
    rides = pd.read_csv(path)
    rides.dropna(inplace=True)
    rides.drop(columns=["id"], inplace=True)
    rides.pop("note")
    rides.insert(0, "one", 1.0)
    rides = rides.sort_values("started")
    return rides


def cached(accelerator, tokenizer):
    data = load_dataset("imdb", split="train")
    with accelerator.main_process_first():
        data.map(lambda row: tokenizer(row["text"]), batched=True)
    return data.map(lambda row: tokenizer(row["text"]), batched=True)


def device():
    torch.zeros(1).to("cuda")
    try:
        probe = torch.ones(4)
        probe.to("cuda")
        print(probe.sum())
    except RuntimeError:
        return "cpu"
    return "cuda"


def timed(x):
    begin = time.perf_counter()
    x.matmul(x)
    return time.perf_counter() - begin


def arrays(rows):
    order = np.arange(rows)
    np.random.default_rng(0).shuffle(order)
    scores = np.zeros(rows)
    np.clip(scores, 0.0, 1.0, out=scores)
    weights = torch.ones(rows)
    weights.clamp_(0.0, 1.0)
    weights.sub_(0.5)
    torch.clamp(weights, 0.0, 1.0, out=weights)
    return order, scores, weights


def train(x, y):
    net = nn.Linear(8, 1)
    net.to("cpu")
    net.float()
    net = torch.compile(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(10):
        optimizer.zero_grad()
        loss = ((net(x)[:, 0] - y) ** 2).mean()
        loss.backward()
        optimizer.step()
