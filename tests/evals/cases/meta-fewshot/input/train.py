"""Prototypical network; an episode's loss is collected over several tasks before the update."""
import logging
from types import SimpleNamespace

import torch
import torch.nn as nn

logging.basicConfig(format="%(levelname).1s%(asctime)s.%(msecs)03d %(filename)s:%(lineno)d] %(message)s",
                    datefmt="%m%d %H:%M:%S", level=logging.INFO)
cfg = SimpleNamespace(way=5, shot=3, query=6, tasks=4, dim=20, emb=16, episodes=240, lr=3e-3)


class Embed(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(cfg.dim, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, cfg.emb))


class TaskSource:
    """Classes differ in a hidden nonlinear 3-d factor, the rest of the input is strong noise."""

    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.lift = torch.randn(3, cfg.dim, generator=torch.Generator().manual_seed(0))
        self.junk = torch.randn(8, cfg.dim, generator=torch.Generator().manual_seed(1))

    def task(self):
        c = 1.5 * torch.randn(cfg.way, 1, 3, generator=self.g)
        n = cfg.shot + cfg.query
        f = c + 0.3 * torch.randn(cfg.way, n, 3, generator=self.g)
        x = f @ self.lift + 1.2 * torch.randn(cfg.way, n, 8, generator=self.g) @ self.junk
        return x[:, : cfg.shot], x[:, cfg.shot:]


def task_loss(net, support, query):
    proto = net(support).mean(1)
    d = -torch.cdist(net(query).flatten(0, 1), proto).pow(2)
    y = torch.arange(cfg.way).repeat_interleave(cfg.query)
    return nn.functional.cross_entropy(d, y), (d.argmax(1) == y).float().mean()


def train():
    torch.manual_seed(0)
    net, src = Embed(), TaskSource(7)
    optimizer = torch.optim.Adam(net.parameters(), lr=cfg.lr)
    for ep in range(1, cfg.episodes + 1):
        losses, accs = [], []
        for _ in range(cfg.tasks):
            loss, acc = task_loss(net, *src.task())
            losses.append(loss.item())
            accs.append(acc.item())
        meta_loss = torch.tensor(losses, requires_grad=True).mean()
        optimizer.zero_grad()
        meta_loss.backward()
        optimizer.step()
        if ep % 20 == 0:
            logging.info("episode %d meta_loss %.4f query_acc %.3f", ep, meta_loss.item(), sum(accs) / len(accs))


if __name__ == "__main__":
    train()
