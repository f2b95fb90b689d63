import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.body(x).relu())


def main(loader, rank):
    dist.init_process_group("nccl")
    net = Net().to(rank)
    for w in net.body.parameters():
        w.requires_grad_(False)
    net.head = nn.Linear(8, 5).to(rank)
    for w in net.body.parameters():
        w.requires_grad_(True)
    replica = DistributedDataParallel(net, device_ids=[rank])
    opt = torch.optim.Adam(replica.parameters(), lr=1e-3)
    for epoch in range(4):
        if epoch == 2:
            for w in net.body.parameters():
                w.requires_grad_(False)
        for x, y in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(replica(x), y).backward()
            opt.step()


main([], 0)
