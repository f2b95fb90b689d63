"""Click model on hashed ad/user/context ids, trained with accelerate."""
import argparse

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from transformers import get_linear_schedule_with_warmup

FIELDS = {"ad": 60, "user": 90, "site": 30, "hour": 24}


def impressions(n, seed):
    world = np.random.default_rng(1)
    vec = {f: world.normal(0, 0.9, (c, 3)) for f, c in FIELDS.items()}
    rng = np.random.default_rng(seed)
    ids = np.stack([rng.integers(0, c, n) for c in FIELDS.values()], 1)
    a, u, s, h = (vec[f][ids[:, i]] for i, f in enumerate(FIELDS))
    logit = (a * u).sum(1) + 0.7 * (a * s).sum(1) + 0.5 * h[:, 0] - 1.2
    y = rng.random(n) < 1 / (1 + np.exp(-logit))
    return TensorDataset(torch.from_numpy(ids), torch.from_numpy(y.astype(np.float32)))


class FactorNet(nn.Module):
    def __init__(self, dim=8, hidden=32):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(c, dim) for c in FIELDS.values())
        for t in self.tables:
            nn.init.normal_(t.weight, std=0.2)
        self.bias = nn.ModuleList(nn.Embedding(c, 1) for c in FIELDS.values())
        for b in self.bias:
            nn.init.zeros_(b.weight)
        self.deep = nn.Sequential(nn.Linear(dim * len(FIELDS), hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, ids):
        e = torch.stack([t(ids[:, i]) for i, t in enumerate(self.tables)], 1)
        fm = 0.5 * (e.sum(1) ** 2 - (e ** 2).sum(1)).sum(1)
        lin = sum(b(ids[:, i]) for i, b in enumerate(self.bias)).squeeze(1)
        return fm + lin + self.deep(e.flatten(1)).squeeze(1)


def auc(score, y):
    order = np.argsort(score, kind="stable")
    rank = np.empty(len(score))
    rank[order] = np.arange(1, len(score) + 1)
    pos = y > 0.5
    return (rank[pos].sum() - pos.sum() * (pos.sum() + 1) / 2) / (pos.sum() * (~pos).sum())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--micro", type=int, default=16)
    ap.add_argument("--accum", type=int, default=16)
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--lr", type=float, default=1.2e-2)
    args = ap.parse_args()
    set_seed(17)
    acc = Accelerator(cpu=True, gradient_accumulation_steps=args.accum)
    train, valid = impressions(16000, 2), impressions(6000, 3)
    train_dl = DataLoader(train, batch_size=args.micro, shuffle=True)
    valid_dl = DataLoader(valid, batch_size=1024)
    net = FactorNet()
    opt = torch.optim.AdamW(net.parameters(), lr=args.lr, weight_decay=1e-2)
    total_steps = len(train_dl) * args.epochs
    sched = get_linear_schedule_with_warmup(opt, int(0.2 * total_steps), total_steps)
    net, opt, train_dl, valid_dl, sched = acc.prepare(net, opt, train_dl, valid_dl, sched)
    acc.print(f"effective batch {args.micro * args.accum}, batches/epoch {len(train_dl)}, "
              f"peak lr {args.lr}, warmup {int(0.2 * total_steps)}, total {total_steps}")
    updates = 0
    for epoch in range(args.epochs):
        net.train()
        losses = []
        for ids, y in train_dl:
            with acc.accumulate(net):
                loss = nn.functional.binary_cross_entropy_with_logits(net(ids), y)
                acc.backward(loss)
                if acc.sync_gradients:
                    acc.clip_grad_norm_(net.parameters(), 1.0)
                    updates += 1
                opt.step()
                sched.step()
                opt.zero_grad()
            losses.append(loss.item())
        net.eval()
        score, truth = [], []
        with torch.no_grad():
            for ids, y in valid_dl:
                s, t = acc.gather_for_metrics((net(ids), y))
                score.append(s.numpy())
                truth.append(t.numpy())
        a = auc(np.concatenate(score), np.concatenate(truth))
        acc.print(f"epoch={epoch + 1} updates={updates} lr={sched.get_last_lr()[0]:.6f} "
                  f"train_bce={np.mean(losses):.4f} valid_auc={a:.4f}")


if __name__ == "__main__":
    main()
