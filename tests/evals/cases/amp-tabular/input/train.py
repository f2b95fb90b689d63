import argparse
import logging
import sys

import torch
import torch.nn as nn

logger = logging.getLogger("amp_tabular")
logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="[%(levelname).1s %(name)s] %(message)s")


class ResidualMLP(nn.Module):
    def __init__(self, d_in, d=96, blocks=3, out=5):
        super().__init__()
        self.stem = nn.Linear(d_in, d)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d)) for _ in range(blocks))
        self.head = nn.Linear(d, out)

    def forward(self, x):
        x = self.stem(x)
        for b in self.blocks:
            x = x + b(x)
        return self.head(x)


class Table:
    def __init__(self, n=6000, d=24, k=5):
        g = torch.Generator().manual_seed(77)
        self.x = torch.randn(n, d, generator=g)
        centres = torch.randn(k, d, generator=g)
        score = self.x @ centres.T + 0.8 * (self.x[:, :k] * self.x[:, k:2 * k])
        self.y = score.argmax(1)

    def batches(self, bs, gen):
        order = torch.randperm(5000, generator=gen)
        for k in range(0, 5000 - bs + 1, bs):
            yield self.x[order[k:k + bs]], self.y[order[k:k + bs]]

    def held_out(self):
        return self.x[5000:], self.y[5000:]


class Trainer:
    def __init__(self, args):
        self.args = args
        torch.manual_seed(args.seed)
        self.table = Table()
        self.model = ResidualMLP(24)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=args.lr, momentum=0.9, nesterov=True)
        self.scaler = torch.amp.GradScaler("cpu", enabled=args.amp)
        self.gen = torch.Generator().manual_seed(args.seed)
        self.it = 0

    def grad_norm(self):
        """true gradient norm, for the log"""
        self.scaler.unscale_(self.opt)
        return torch.linalg.vector_norm(torch.stack([p.grad.norm() for p in self.model.parameters()])).item()

    def train_step(self, x, y):
        a = self.args
        with torch.autocast("cpu", dtype=torch.float16, enabled=a.amp):
            loss = nn.functional.cross_entropy(self.model(x).float(), y)
        self.opt.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        log_now = self.it % a.log_every == 0
        norm = self.grad_norm() if log_now else None
        nn.utils.clip_grad_norm_(self.model.parameters(), a.clip)
        self.scaler.step(self.opt)
        self.scaler.update()
        if log_now:
            logger.info("it %4d  loss %.4f  grad_norm %.3f (limit %.1f)  scale %g", self.it, loss.item(), norm, a.clip, self.scaler.get_scale())
        self.it += 1

    @torch.no_grad()
    def accuracy(self):
        x, y = self.table.held_out()
        return (self.model(x).argmax(1) == y).float().mean().item()

    def run(self):
        for epoch in range(1, self.args.epochs + 1):
            for x, y in self.table.batches(self.args.batch_size, self.gen):
                self.train_step(x, y)
            logger.info("epoch %d/%d held-out accuracy %.3f", epoch, self.args.epochs, self.accuracy())


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--amp", action=argparse.BooleanOptionalAction, default=True)
    ap.add_argument("--lr", type=float, default=0.02)
    ap.add_argument("--clip", type=float, default=2.0)
    ap.add_argument("--batch-size", type=int, default=100)
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--log-every", type=int, default=75)
    ap.add_argument("--seed", type=int, default=0)
    Trainer(ap.parse_args()).run()
