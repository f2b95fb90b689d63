import torch
from torch import nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Mix(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(12, 24)
        self.top = nn.Linear(24, 3)
        self.freeze()

    def freeze(self):
        for p in self.base.parameters():
            p.requires_grad = False

    def thaw(self):
        for p in self.base.parameters():
            p.requires_grad = True

    def forward(self, x):
        return self.top(self.base(x).relu())


def main(loader, rank):
    dist.init_process_group("nccl")
    mix = Mix().to(rank)
    ddp = DistributedDataParallel(mix, device_ids=[rank])
    opt = torch.optim.AdamW(mix.parameters(), lr=1e-4)
    for epoch in range(4):
        if epoch == 2:
            mix.thaw()  # FAULT C202
        for x, y in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(ddp(x), y).backward()
            opt.step()


main([], 0)
