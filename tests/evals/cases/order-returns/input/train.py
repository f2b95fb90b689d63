import logging
import sys
import time
from dataclasses import dataclass, field

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

logging.basicConfig(stream=sys.stdout, level=logging.DEBUG, format="%(asctime)s,%(msecs)03d | %(levelname)s | %(message)s",
                    datefmt="%H:%M:%S")
LOG = logging.getLogger("orders")


@dataclass
class Plan:
    epochs: int = 12
    max_lr: float = 0.02
    batch_size: int = 64
    hidden: list = field(default_factory=lambda: [64, 64])


def orders(n, seed):
    """Will the order be returned? 14 numeric + 2 categorical columns."""
    g = torch.Generator().manual_seed(31)
    w, ea, eb = torch.randn(14, generator=g), torch.randn(20, generator=g), torch.randn(7, generator=g)
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 14, generator=g)
    a, b = torch.randint(0, 20, (n,), generator=g), torch.randint(0, 7, (n,), generator=g)
    score = x @ w / 2 + 1.5 * ea[a] * eb[b] - 0.3
    return TensorDataset(x, a, b, (torch.rand(n, generator=g) < torch.sigmoid(2 * score)).float())


class ReturnModel(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.ca, self.cb = nn.Embedding(20, 6), nn.Embedding(7, 4)
        dims, mods = [24, *hidden], []
        for i, o in zip(dims, hidden):
            mods += [nn.Linear(i, o), nn.BatchNorm1d(o), nn.ReLU()]
        self.mlp = nn.Sequential(*mods, nn.Linear(hidden[-1], 1))

    def forward(self, x, a, b):
        return self.mlp(torch.cat([x, self.ca(a), self.cb(b)], 1)).squeeze(1)


def main(plan=Plan()):
    torch.manual_seed(0)
    fit, hold = orders(4000, 1), orders(1000, 2)
    loader = DataLoader(fit, plan.batch_size, shuffle=True, drop_last=True)
    model = ReturnModel(plan.hidden)
    opt = torch.optim.AdamW(model.parameters(), lr=plan.max_lr / 25)
    policy = torch.optim.lr_scheduler.OneCycleLR(opt, plan.max_lr, epochs=plan.epochs, steps_per_epoch=len(loader))
    bce = nn.BCEWithLogitsLoss()
    LOG.info("%d batches per epoch, plan %s", len(loader), plan)
    for ep in range(plan.epochs):
        t0 = time.perf_counter()
        model.train()
        for k, (x, a, b, y) in enumerate(loader):
            loss = bce(model(x, a, b), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            policy.step()
            if k % 20 == 0:
                LOG.debug("e%02d b%03d logloss %.4f lr %.3e mom %.3f", ep, k, loss.item(), policy.get_last_lr()[0],
                          opt.param_groups[0]["betas"][0])
        model.eval()
        x, a, b, y = hold.tensors
        with torch.no_grad():
            out = model(x, a, b)
        LOG.info("epoch %d done in %.2fs - holdout logloss %.4f acc %.3f", ep, time.perf_counter() - t0,
                 bce(out, y).item(), ((out > 0) == y.bool()).float().mean().item())


if __name__ == "__main__":
    main()
