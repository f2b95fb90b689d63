# torchrun-free launcher: python train.py starts both ranks itself
import datetime
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

WORLD, PORT, TIMEOUT = 2, 29721, 8


def say(rank, msg):
    print(f"[rank {rank}] {time.strftime('%H:%M:%S')} {msg}", flush=True)


def shard(rank, n=1500, d=30):
    """every site holds its own patients; the task is the same, the noise is not"""
    g = torch.Generator().manual_seed(40 + rank)
    w = torch.randn(d, generator=torch.Generator().manual_seed(1))
    x = torch.randn(n, d, generator=g)
    y = (x @ w + (1.0 + 1.5 * rank) * torch.randn(n, generator=g) > 0).float()
    cut = int(0.8 * n)
    return (x[:cut], y[:cut]), (x[cut:], y[cut:])


def average_gradients(model):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= WORLD


class Patience:
    def __init__(self, patience, min_delta=1e-3):
        self.best, self.bad, self.patience, self.min_delta = float("inf"), 0, patience, min_delta

    def __call__(self, v):
        if v < self.best - self.min_delta:
            self.best, self.bad = v, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


def work(rank):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(PORT)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD, timeout=datetime.timedelta(seconds=TIMEOUT))
    torch.set_num_threads(1)
    torch.manual_seed(0)
    (xt, yt), (xv, yv) = shard(rank)
    model = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 1))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    crit, stop = nn.BCEWithLogitsLoss(), Patience(3)
    for epoch in range(40):
        perm = torch.randperm(len(xt))
        for idx in perm.split(60):
            loss = crit(model(xt[idx]).squeeze(1), yt[idx])
            opt.zero_grad()
            loss.backward()
            average_gradients(model)
            opt.step()
        with torch.no_grad():
            val = crit(model(xv).squeeze(1), yv).item()
        say(rank, f"epoch {epoch:2d} train {loss.item():.4f} val {val:.4f} best {stop.best:.4f} bad {stop.bad}")
        if stop(val):
            break
    say(rank, "training finished, waiting for the others")
    dist.barrier()
    if rank == 0:
        torch.save(model.state_dict(), "model.pt")
        say(rank, "saved model.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    try:
        mp.spawn(work, nprocs=WORLD)
    except Exception as e:
        print(str(e).strip()[-1500:])
        sys.exit(1)
