import hashlib
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

WORLD = 2
PORT = "29713"


class Denoiser(nn.Module):
    """Predicts the noise that was added to a 32-sample ECG beat at a random level."""

    def __init__(self, width=96):
        super().__init__()
        self.inp = nn.Linear(32 + 1, width)
        self.mid = nn.Linear(width, width)
        self.out = nn.Linear(width, 32)

    def forward(self, noisy, level):
        h = F.silu(self.inp(torch.cat([noisy, level], 1)))
        h = h + F.silu(self.mid(h))
        return self.out(h)

    def training_step(self, beats, g):
        level = torch.rand(len(beats), 1, generator=g)
        eps = torch.randn(beats.shape, generator=g)
        noisy = (1 - level).sqrt() * beats + level.sqrt() * eps
        return F.mse_loss(self(noisy, level), eps)


def beats(n, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.linspace(-1, 1, 32)
    centre = 0.3 * torch.randn(n, 1, generator=g)
    width = 0.08 + 0.1 * torch.rand(n, 1, generator=g)
    qrs = torch.exp(-((t - centre) / width) ** 2) - 0.3 * torch.exp(-((t - centre - 0.25) / 0.15) ** 2)
    return 2 * qrs + 0.02 * torch.randn(n, 32, generator=g)


def digest(module):
    blob = torch.cat([p.detach().flatten() for p in module.parameters()])
    return hashlib.md5(blob.numpy().tobytes()).hexdigest()[:8], blob.norm().item()


def worker(rank):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = PORT
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    torch.manual_seed(5)
    net = DistributedDataParallel(Denoiser())
    optim = torch.optim.AdamW(net.parameters(), lr=1e-3)
    data = beats(2048, seed=9)[rank::WORLD]
    g = torch.Generator().manual_seed(40 + rank)
    name, norm = digest(net.module)
    print(f"r{rank} start       weights {name} |w| {norm:.5f}", flush=True)
    for epoch in range(6):
        order = torch.randperm(len(data), generator=g)
        total = 0.0
        for i in range(0, len(data), 64):
            batch = data[order[i:i + 64]]
            loss = net.module.training_step(batch, g)
            optim.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optim.step()
            total += loss.item() * len(batch)
        name, norm = digest(net.module)
        print(f"r{rank} epoch {epoch} mse {total / len(data):.4f} weights {name} |w| {norm:.5f}", flush=True)
        dist.barrier()
    if rank == 0:
        torch.save(net.module.state_dict(), "denoiser.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, nprocs=WORLD)
