"""Burned-area fraction from weather and fuel variables. One expert per biome, the batch sampler is biome-pure.

    python train.py --world 2
"""
import argparse
import socket
import torch
import torch.nn as nn
import torch.multiprocessing as mp
from dist_utils import average_gradients, broadcast_model, mean_scalar, setup

DIM = 10


def make_region(n, biome, seed):
    g = torch.Generator().manual_seed(seed)
    w = torch.randn(DIM, 6, generator=torch.Generator().manual_seed(50 + biome))
    v = torch.randn(6, generator=torch.Generator().manual_seed(60 + biome))
    x = torch.randn(n, DIM, generator=g)
    y = torch.tanh(x @ w / 3) @ v + 0.05 * torch.randn(n, generator=g)
    return x, y


class FireModel(nn.Module):
    def __init__(self, biomes=2, width=48):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(DIM, width), nn.Tanh())
        self.expert = nn.ModuleList([nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)) for _ in range(biomes)])

    def forward(self, x, biome):
        return self.expert[biome](self.stem(x)).squeeze(-1)


def biome_batches(data, batch, rank, world, epoch):
    """Shuffled list of (biome, indices); ranks take turns."""
    g = torch.Generator().manual_seed(epoch)
    out = []
    order = [torch.randperm(len(x), generator=g).split(batch) for x, _ in data]
    for pair in zip(*order):
        out += [(b, idx) for b, idx in enumerate(pair)]
    return out[rank::world]


def evaluate(model, val):
    model.eval()
    with torch.no_grad():
        r = [((model(x, b) - y) ** 2).mean().item() / y.var().item() for b, (x, y) in enumerate(val)]
    model.train()
    return r


def worker(rank, world, port, args):
    torch.set_num_threads(1)
    setup(rank, world, port)
    torch.manual_seed(rank)
    model = FireModel()
    broadcast_model(model)
    data = [make_region(3200, b, 1 + b) for b in range(2)]
    val = [make_region(800, b, 11 + b) for b in range(2)]
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        tot, nb = 0.0, 0
        for biome, idx in biome_batches(data, args.batch, rank, world, epoch):
            x, y = data[biome]
            loss = ((model(x[idx], biome) - y[idx]) ** 2).mean()
            opt.zero_grad()
            loss.backward()
            average_gradients(model)
            opt.step()
            tot, nb = tot + loss.item(), nb + 1
        train = mean_scalar(tot / nb)
        if rank == 0 and epoch % 3 == 2:
            a, b = evaluate(model, val)
            print(f"[rank0/{world}] epoch {epoch:2d} train_mse {train:.4f} unexplained variance: savanna {a:.3f} boreal {b:.3f}", flush=True)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--world", type=int, default=2)
    ap.add_argument("--epochs", type=int, default=18)
    ap.add_argument("--batch", type=int, default=100)
    ap.add_argument("--lr", type=float, default=3e-3)
    args = ap.parse_args()
    print("config", vars(args), flush=True)
    mp.spawn(worker, (args.world, free_port(), args), nprocs=args.world)
