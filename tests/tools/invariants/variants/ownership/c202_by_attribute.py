import torch
from torch import nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(12, 24)
        self.score = nn.Linear(24, 3)

    def forward(self, x):
        return self.score(self.query(x).relu())


class Worker:
    def __init__(self, rank):
        dist.init_process_group("nccl")
        self.ranker = Ranker().to(rank)
        for weight in self.ranker.query.parameters():
            weight.requires_grad = False
        self.replica = DistributedDataParallel(self.ranker, device_ids=[rank])
        self.opt = torch.optim.SGD(self.ranker.parameters(), lr=0.1)

    def epoch(self, batches):
        for x, y in batches:
            self.opt.zero_grad()
            nn.functional.cross_entropy(self.replica(x), y).backward()
            self.opt.step()

    def train(self, batches):
        self.epoch(batches)
        for weight in self.ranker.query.parameters():
            weight.requires_grad = True  # FAULT C202
        self.epoch(batches)


Worker(0).train([])
