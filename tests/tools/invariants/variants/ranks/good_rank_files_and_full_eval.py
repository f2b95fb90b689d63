import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

def main(ds, vs):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.manual_seed(1 + rank)
    model = DDP(nn.Linear(3, 2).cuda())
    opt = torch.optim.SGD(model.parameters(), 0.1)
    dl = DataLoader(ds, 32, shuffle=True)
    for epoch in range(3):
        for x, y in dl:
            opt.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            opt.step()
        torch.save(opt.state_dict(), f"opt_rank{rank}.pt")
        if rank == 0:
            with torch.no_grad():
                ok = sum((model.module(x).argmax(1) == y).sum().item() for x, y in DataLoader(vs, 64))
            print(ok)
            torch.save(model.module.state_dict(), "m.pt")
        dist.barrier()
