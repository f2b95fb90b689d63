import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

def evaluate(model, dl, rank):
    if rank != 0:
        return None
    n = 0
    with torch.no_grad():
        for x, y in dl:
            n += (model.module(x).argmax(1) == y).sum().item()
    dist.barrier()  # FAULT C117
    return n
def main(ds, vs):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    model = DDP(nn.Linear(3, 2).cuda())
    opt = torch.optim.SGD(model.parameters(), 0.1)
    sampler = DistributedSampler(ds)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(ds, 32, sampler=sampler):
            opt.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            opt.step()
        evaluate(model, DataLoader(vs, 32), rank)
