import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

def save(model, opt, path):
    torch.save({"m": model.module.state_dict(), "o": opt.state_dict()}, path)  # FAULT C381
def train(rank, world, ds):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    model = DDP(nn.Linear(3, 2))
    opt = torch.optim.SGD(model.parameters(), 0.1)
    sampler = DistributedSampler(ds)
    dl = DataLoader(ds, 32, sampler=sampler)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in dl:
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
        if epoch % 2 == 0:
            save(model, opt, f"ckpt_{epoch}.pt")
if __name__ == "__main__":
    torch.multiprocessing.spawn(train, args=(2, None), nprocs=2)
