import argparse
import datetime
import math
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def gauges(n, seed):
    """24 h of water level -> level in 6 h; the second half of the stations are estuaries (noisier)."""
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(30.0)
    phase = 6.28 * torch.rand(n, 1, generator=g)
    m2 = torch.sin(6.283 * t / 12.42 + phase)
    s2 = 0.4 * torch.sin(6.283 * t / 12.0 + 1.7 * phase)
    noise = torch.where(torch.arange(n)[:, None] < n // 2, 0.05, 0.45)
    level = m2 + s2 + noise * torch.randn(n, 30, generator=g)
    return TensorDataset(level[:, :24, None], level[:, 29:30])


class TideLSTM(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.lstm = nn.LSTM(1, width, batch_first=True)
        self.read = nn.Linear(width, 1)

    def forward(self, x):
        return self.read(self.lstm(x)[0][:, -1])


class Patience:
    def __init__(self, limit, min_delta):
        self.limit, self.min_delta = limit, min_delta
        self.best, self.bad = math.inf, 0

    def exhausted(self, value):
        if value < self.best - self.min_delta:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.limit


def validate(net, loader):
    net.eval()
    with torch.no_grad():
        sse = sum(((net(x) - y) ** 2).sum().item() for x, y in loader)
    return sse / len(loader.dataset)


def worker(rank, world, opts):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(opts.port))
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=datetime.timedelta(seconds=opts.timeout))
    torch.manual_seed(0)
    train_set, val_set = gauges(512, 1), gauges(256, 2)
    sampler = DistributedSampler(train_set, world, rank, shuffle=True, seed=3)
    loader = DataLoader(train_set, batch_size=32, sampler=sampler)
    share = len(val_set) // world
    val_loader = DataLoader(Subset(val_set, range(rank * share, (rank + 1) * share)), batch_size=64)
    net = DistributedDataParallel(TideLSTM())
    optim = torch.optim.Adam(net.parameters(), lr=1e-2)
    stopper = Patience(limit=2, min_delta=1e-3)

    for epoch in range(opts.epochs):
        sampler.set_epoch(epoch)
        net.train()
        for x, y in loader:
            optim.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            optim.step()
        mse = validate(net.module, val_loader)
        print(f"[rank {rank}] epoch {epoch:2d} val mse {mse:.4f} best {min(mse, stopper.best):.4f} bad {stopper.bad}", flush=True)
        if stopper.exhausted(mse):
            print(f"[rank {rank}] no improvement for {stopper.limit} epochs, stopping", flush=True)
            break

    dist.barrier()
    if rank == 0:
        torch.save(net.module.state_dict(), "tide.pt")
        print("saved tide.pt", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=40)
    ap.add_argument("--port", type=int, default=29711)
    ap.add_argument("--timeout", type=int, default=8)
    ap.add_argument("--world", type=int, default=2)
    o = ap.parse_args()
    mp.spawn(worker, args=(o.world, o), nprocs=o.world)
