import torch
from torch import nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Speech(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Linear(12, 24)
        self.back = nn.Linear(24, 3)

    def forward(self, x):
        return self.back(self.front(x).relu())


def main(rank):
    dist.init_process_group("nccl")
    speech = Speech().to(rank)
    wrapped = DistributedDataParallel(speech, device_ids=[rank])
    extend(speech)
    opt = torch.optim.Adam(wrapped.parameters(), lr=1e-3)
    for x, y in []:
        opt.zero_grad()
        nn.functional.cross_entropy(wrapped(x), y).backward()
        opt.step()


def extend(network):
    network.back = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 3)).cuda()  # FAULT C202


main(0)
