"""Dialect of a speaker from formant tracks, two processes."""
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

DIALECTS, WORLD = 5, 2


def speakers(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, DIALECTS, (n,), generator=g)
    t = torch.linspace(0, 1, 32)
    slope = torch.linspace(-1, 1, DIALECTS)[y][:, None]
    f1 = slope * t + 0.8 * torch.randn(n, 32, generator=g)
    f2 = (y % 2)[:, None] * torch.sin(6.28 * t) * 0.7 + 0.8 * torch.randn(n, 32, generator=g)
    return TensorDataset(torch.stack([f1, f2], 1), y)


class DialectNet(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(2, dim, 7, stride=2, padding=3), nn.GroupNorm(4, dim), nn.GELU(),
                                  nn.Conv1d(dim, dim, 5, stride=2, padding=2), nn.GELU(), nn.Flatten())
        self.head = nn.Linear(8 * dim, DIALECTS)

    def forward(self, x):
        return self.head(self.body(x))

    def loss(self, x, y):
        """Cross entropy with a penalty on the size of the logits."""
        z = self(x)
        return F.cross_entropy(z, y, label_smoothing=0.05) + 1e-4 * z.pow(2).mean(), z


def worker(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    torch.manual_seed(17)
    data = speakers(640, 1)
    sampler = DistributedSampler(data, WORLD, rank, shuffle=True, seed=17)
    loader = DataLoader(data, batch_size=16, sampler=sampler, drop_last=True)
    val = DataLoader(speakers(500, 2), batch_size=250)
    net = DistributedDataParallel(DialectNet())
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.02)
    for epoch in range(12):
        sampler.set_epoch(epoch)
        net.train()
        total = hits = seen = 0
        for x, y in loader:
            loss, z = net.module.loss(x, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(y)
            hits += (z.argmax(1) == y).sum().item()
            seen += len(y)
        net.eval()
        with torch.no_grad():
            acc = sum((net.module(x).argmax(1) == y).sum().item() for x, y in val) / 500
            norm = sum(p.square().sum() for p in net.parameters()).sqrt().item()
        rows = [None] * WORLD
        dist.all_gather_object(rows, (total / seen, hits / seen, acc, norm))
        if rank == 0:
            for r, row in enumerate(rows):
                print("epoch {:2d} rank {} loss {:.4f} train_acc {:.3f} val_acc {:.3f} weight_norm {:.5f}".format(epoch, r, *row),
                      flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(port,), nprocs=WORLD)
