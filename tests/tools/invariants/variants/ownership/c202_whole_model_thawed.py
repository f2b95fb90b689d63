import torch
from torch import nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Depth(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(12, 24)
        self.decoder = nn.Linear(24, 3)

    def forward(self, x):
        return self.decoder(self.encoder(x).relu())


rank = 0
dist.init_process_group("nccl")
depth = Depth().to(rank)
depth.encoder.requires_grad_(False)
replica = DistributedDataParallel(depth, device_ids=[rank])
opt = torch.optim.AdamW(depth.parameters(), lr=1e-4)
for x, y in []:
    opt.zero_grad()
    nn.functional.cross_entropy(replica(x), y).backward()
    opt.step()
replica.module.requires_grad_(True)  # FAULT C202
for x, y in []:
    opt.zero_grad()
    nn.functional.cross_entropy(replica(x), y).backward()
    opt.step()
