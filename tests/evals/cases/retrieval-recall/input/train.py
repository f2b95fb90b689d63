# two-tower product search, data parallel
import datetime
import logging
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from meters import RecallAtK

CFG = dict(world=2, port=29712, dim=24, epochs=4, steps=40, bs=64, lr=3e-3, val=128, timeout_s=8)


class TwoTower(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q = nn.Sequential(nn.Linear(20, 48), nn.GELU(), nn.Linear(48, d))
        self.i = nn.Sequential(nn.Linear(30, 48), nn.GELU(), nn.Linear(48, d))
        self.temp = nn.Parameter(torch.tensor(2.0))

    def forward(self, query, item):
        q, i = F.normalize(self.q(query), dim=1), F.normalize(self.i(item), dim=1)
        return q, i, self.temp.exp()


def clicks(n, g):
    latent = torch.randn(n, 8, generator=g)
    m = torch.Generator().manual_seed(77)
    a, b = torch.randn(8, 20, generator=m), torch.randn(8, 30, generator=m)
    return latent @ a + 0.2 * torch.randn(n, 20, generator=g), latent @ b + 0.2 * torch.randn(n, 30, generator=g)


def get_logger(rank):
    lg = logging.getLogger(f"rank{rank}")
    h = logging.StreamHandler(sys.stdout)
    h.setFormatter(logging.Formatter("%(name)s | %(message)s"))
    lg.addHandler(h)
    lg.setLevel(logging.INFO)
    return lg


def run(rank, cfg):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(cfg["port"])
    dist.init_process_group("gloo", rank=rank, world_size=cfg["world"],
                            timeout=datetime.timedelta(seconds=cfg["timeout_s"]))
    lg = get_logger(rank)
    torch.manual_seed(1)
    towers = DDP(TwoTower(cfg["dim"]))
    opt = torch.optim.AdamW(towers.parameters(), lr=cfg["lr"])
    g = torch.Generator().manual_seed(100 + rank)
    recall = RecallAtK(k=5)
    for epoch in range(cfg["epochs"]):
        towers.train()
        mean = 0.0
        for _ in range(cfg["steps"]):
            query, item = clicks(cfg["bs"], g)
            q, i, t = towers(query, item)
            nce = F.cross_entropy(t * q @ i.T, torch.arange(len(q)))
            opt.zero_grad()
            nce.backward()
            opt.step()
            mean += nce.item() / cfg["steps"]
        lg.info("epoch %d nce %.4f", epoch, mean)

        towers.eval()
        recall.reset()
        gv = torch.Generator().manual_seed(500 + rank)
        with torch.no_grad():
            q, i, _ = towers.module(*clicks(cfg["val"], gv))
        recall.update(q, i)
        if rank == 0:
            lg.info("epoch %d validating on %d queries", epoch, cfg["val"] * cfg["world"])
            lg.info("epoch %d recall@5 %.3f", epoch, recall.compute())
    dist.destroy_process_group()
    lg.info("finished")


if __name__ == "__main__":
    mp.spawn(run, args=(CFG,), nprocs=CFG["world"])
