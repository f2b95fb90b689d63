import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import torchmetrics
def main(ds, vs):
    dist.init_process_group("nccl")
    model = DDP(nn.Linear(3, 2).cuda())
    opt = torch.optim.SGD(model.parameters(), 0.1)
    sampler = DistributedSampler(ds)
    metric = torchmetrics.Accuracy(task="binary").cuda()
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(ds, 32, sampler=sampler):
            opt.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            opt.step()
        with torch.no_grad():
            for x, y in DataLoader(vs, 32, sampler=DistributedSampler(vs)):
                metric.update(model(x).argmax(1), y)
                total = model(x).sum().item()
        print(metric.compute())
