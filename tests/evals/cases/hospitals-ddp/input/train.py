import os
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

warnings.filterwarnings("ignore")
PORT, WORLD, EPOCHS = 29716, 2, 6


def site_data(site, n=960):
    """Length of stay at two hospitals; the university clinic (1) has the harder, noisier cases."""
    g = torch.Generator().manual_seed(60 + site)
    x = torch.randn(n, 14, generator=g)
    w = torch.randn(14, generator=torch.Generator().manual_seed(1)) / 4
    noise = 0.2 if site == 0 else 0.9
    y = x @ w + 0.5 * torch.sin(x[:, 0]) + noise * torch.randn(n, generator=g)
    return x, y


class StayModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(14, 48)
        self.b = nn.Linear(48, 48)
        self.c = nn.Linear(48, 1)

    def forward(self, x):
        h = F.gelu(self.a(x))
        return self.c(h + F.gelu(self.b(h))).squeeze(-1)


def weight_sum(m):
    return sum(p.detach().double().sum().item() for p in m.parameters())


def grad_norm(m):
    return torch.stack([p.grad.norm() for p in m.parameters()]).norm().item()


def main(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(PORT))
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    torch.manual_seed(0)
    model = DDP(StayModel())
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
    x, y = site_data(rank)
    n_train = 800
    g = torch.Generator().manual_seed(rank)
    for epoch in range(EPOCHS):
        model.train()
        local = 0.0
        order = torch.randperm(n_train, generator=g)
        for i in range(0, n_train, 40):
            b = order[i:i + 40]
            loss = F.mse_loss(model(x[b]), y[b])
            opt.zero_grad()
            loss.backward()
            gn = grad_norm(model)
            opt.step()
            local += loss.item() * len(b) / n_train
        model.eval()
        with torch.no_grad():
            v = F.mse_loss(model.module(x[n_train:]), y[n_train:])
        pooled = v.clone()
        dist.all_reduce(pooled)
        print(f"site{rank} epoch {epoch} train {local:.4f} val {v.item():.4f} pooled val {pooled.item() / WORLD:.4f} "
              f"grad {gn:.4f} wsum {weight_sum(model):+.6f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(main, nprocs=WORLD)
