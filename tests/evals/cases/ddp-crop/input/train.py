"""Two-process DDP: leaf-disease classifier on synthetic patches (gloo, CPU)."""
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

WORLD = 2


def patches(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 4, (n,), generator=g)
    x = torch.rand(n, 3, 12, 12, generator=g)
    for i, c in enumerate(y.tolist()):
        x[i, c % 3, 2 + 4 * (c // 2):6 + 4 * (c // 2), 3:9] += 0.7
    return TensorDataset(x, y)


class LeafNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 12, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.embed = nn.Linear(12 * 25, 32)
        self.head = nn.Linear(32, 4)

    def forward(self, x):
        return self.head(torch.relu(self.embed(self.features(x))))

    def training_loss(self, x, y, sparsity=1e-3):
        z = torch.relu(self.embed(self.features(x)))
        return nn.functional.cross_entropy(self.head(z), y) + sparsity * z.abs().mean()


def checksum(model):
    return sum(p.double().abs().sum().item() for p in model.parameters())


def evaluate(model, ds):
    x, y = ds.tensors
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def worker(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29713")
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    torch.manual_seed(100 + rank)
    torch.set_num_threads(1)
    model = DDP(LeafNet())
    train, test = patches(1200, 0), patches(400, 1)
    sampler = DistributedSampler(train, WORLD, rank, shuffle=True, seed=5)
    dl = DataLoader(train, batch_size=25, sampler=sampler)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        tot = 0.0
        for x, y in dl:
            loss = model.module.training_loss(x, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item()
        line = [None] * WORLD
        dist.all_gather_object(line, f"rank{rank}: loss {tot / len(dl):.4f} test_acc {evaluate(model.module, test):.4f} "
                                     f"|w| {checksum(model.module):.6f}")
        if rank == 0:
            print(f"epoch {epoch}  " + "   ".join(line), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, nprocs=WORLD)
