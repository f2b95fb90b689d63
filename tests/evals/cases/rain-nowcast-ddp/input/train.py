import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

WORLD = 2
PATIENCE = 3
MAX_EPOCHS = 60


def radar_cells(n, seed):
    """Three past 12x12 reflectivity frames of a moving cell; the next frame is the target."""
    g = torch.Generator().manual_seed(seed)
    yy, xx = torch.meshgrid(torch.arange(12.0), torch.arange(12.0), indexing="ij")
    pos = 3 + 4 * torch.rand(n, 2, generator=g)
    vel = 0.8 * torch.randn(n, 2, generator=g)
    frames = []
    for k in range(4):
        c = pos + k * vel
        d = (yy - c[:, 0, None, None]) ** 2 + (xx - c[:, 1, None, None]) ** 2
        frames.append(torch.exp(-d / 4))
    f = torch.stack(frames, 1) + 0.15 * torch.randn(n, 4, 12, 12, generator=g)
    return TensorDataset(f[:, :3], f[:, 3:])


class Nowcaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.seq = nn.Sequential(
            nn.Flatten(), nn.Linear(432, 160), nn.ReLU(), nn.Linear(160, 160), nn.ReLU(), nn.Linear(160, 144)
        )

    def forward(self, x):
        return self.seq(x).view(-1, 1, 12, 12)


class Patience:
    def __init__(self, limit):
        self.limit, self.best, self.bad = limit, float("inf"), 0

    def update(self, value):
        if value < self.best - 1e-5:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.limit


@torch.no_grad()
def shard_error(net, loader):
    net.eval()
    s = n = 0
    for x, y in loader:
        s += nn.functional.mse_loss(net(x), y, reduction="sum").item()
        n += y.numel()
    net.train()
    return s / n


def worker(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=WORLD, timeout=timedelta(seconds=12))
    torch.manual_seed(0)
    train, val = radar_cells(320, 1), radar_cells(64, 2)
    sampler = DistributedSampler(train, WORLD, rank, shuffle=True, seed=4)
    vs = DistributedSampler(val, WORLD, rank, shuffle=False)
    loader = DataLoader(train, batch_size=16, sampler=sampler)
    vloader = DataLoader(val, batch_size=16, sampler=vs)
    net = DDP(Nowcaster())
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    stop = Patience(PATIENCE)
    for epoch in range(MAX_EPOCHS):
        sampler.set_epoch(epoch)
        total = 0.0
        for x, y in loader:
            loss = nn.functional.mse_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        err = shard_error(net.module, vloader)
        sys.stdout.write(f"<rank{rank}> epoch {epoch:02d} mse {total / len(loader):.5f} val {err:.5f}\n")
        sys.stdout.flush()
        if stop.update(err):
            print(f"<rank{rank}> no improvement for {PATIENCE} epochs, leaving the loop", flush=True)
            break
    dist.barrier()
    if rank == 0:
        print(f"done, best val {stop.best:.5f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    try:
        mp.spawn(worker, args=(29741,), nprocs=WORLD)
    except Exception as exc:
        print(exc)
        sys.exit(1)
