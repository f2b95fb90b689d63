"""Particle track finder under DistributedDataParallel (2 processes, gloo)."""
import os
import sys
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class TrackNet(nn.Module):
    def __init__(self, aux_weight=0.0):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(15, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU())
        self.charge = nn.Linear(48, 2)
        self.vertex = nn.Linear(48, 3)       # auxiliary task of the first paper version
        self.aux_weight = aux_weight

    def forward(self, hits):
        h = self.trunk(hits)
        out = {"charge": self.charge(h)}
        if self.aux_weight > 0:
            out["vertex"] = self.vertex(h)
        return out


def tracks(n, g):
    t = torch.linspace(0, 1, 5)
    q = torch.randint(0, 2, (n,), generator=g)
    curv = (q * 2 - 1)[:, None] * (0.5 + torch.rand(n, 1, generator=g))
    x = torch.stack([t.expand(n, 5), curv * t ** 2, torch.randn(n, 1, generator=g) * t], -1)
    return (x + 0.05 * torch.randn(x.shape, generator=g)).flatten(1), q


def worker(rank, world, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    model = DDP(TrackNet())
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    g = torch.Generator().manual_seed(100 + rank)
    for it in range(60):
        hits, q = tracks(64, g)
        xent = nn.functional.cross_entropy(model(hits)["charge"], q)
        opt.zero_grad()
        xent.backward()
        opt.step()
        if rank == 0 and it % 10 == 0:
            print(f"[rank0] it={it} xent={xent.item():.4f}", flush=True)
    if rank == 0:
        print("[rank0] done", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    world = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    mp.spawn(worker, args=(world, 29751), nprocs=world)
