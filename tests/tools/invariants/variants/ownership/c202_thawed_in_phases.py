import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Captioner(nn.Module):
    def __init__(self):
        super().__init__()
        self.vision = nn.Linear(64, 32)
        self.language = nn.Linear(32, 100)

    def forward(self, x):
        return self.language(self.vision(x))


def run(loader, rank):
    dist.init_process_group("nccl")
    captioner = Captioner().cuda(rank)
    captioner.vision.requires_grad_(False)
    replica = DDP(captioner, device_ids=[rank])
    opt = torch.optim.AdamW(captioner.parameters(), lr=1e-4)
    for epoch in range(8):
        if epoch >= 4:
            captioner.vision.requires_grad_(True)  # FAULT C202
        for x, y in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(replica(x), y).backward()
            opt.step()


run([], 0)
