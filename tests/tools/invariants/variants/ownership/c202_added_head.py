import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Linear(40, 80)
        self.classifier = nn.Linear(80, 1000)

    def forward(self, x):
        return self.classifier(self.features(x).relu())


class Job:
    def __init__(self, rank, classes):
        dist.init_process_group("nccl")
        self.model = DistributedDataParallel(Backbone().to(rank), device_ids=[rank])
        self.model.module.classifier = nn.Linear(80, classes).to(rank)  # FAULT C202
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def fit(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()


Job(0, 7).fit([])
