"""Next-item recommender on shop sessions: a GRU trained session-parallel, after the GRU4Rec scheme.

Each of the B lanes of a batch walks through one session; when a session ends the lane takes the next one.
"""
import argparse

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
import torch.nn.functional as F


def make_sessions(n, items, seed):
    """Browsing inside one department most of the time, with a habitual follow-up for every item."""
    rng = np.random.default_rng(seed)
    habit = np.random.default_rng(77).permutation(items)
    dept = 20
    sessions = []
    for _ in range(n):
        length = int(np.clip(rng.geometric(0.12) + 2, 3, 40))
        home = int(rng.integers(items // dept))
        s = [home * dept + int(rng.integers(dept))]
        while len(s) < length:
            u = rng.random()
            if u < 0.35:
                s.append(int(habit[s[-1]]))
            elif u < 0.9:
                s.append(home * dept + int(min(rng.geometric(0.2) - 1, dept - 1)))
            else:
                s.append(int(rng.integers(items)))
        sessions.append(np.array(s))
    return sessions


class SessionParallel:
    """Yields (input item, next item, started) for B lanes; `started` marks lanes that begin a new session."""

    def __init__(self, sessions, lanes, order=None):
        self.sessions, self.lanes = sessions, lanes
        self.order = np.arange(len(sessions)) if order is None else order

    def __iter__(self):
        queue = iter(self.order)
        cur = [self.sessions[next(queue)] for _ in range(self.lanes)]
        pos = np.zeros(self.lanes, dtype=int)
        started = np.ones(self.lanes, dtype=bool)
        while True:
            yield (torch.tensor([s[p] for s, p in zip(cur, pos)]),
                   torch.tensor([s[p + 1] for s, p in zip(cur, pos)]), torch.from_numpy(started.copy()))
            pos += 1
            started[:] = False
            for lane in range(self.lanes):
                if pos[lane] + 1 >= len(cur[lane]):
                    nxt = next(queue, None)
                    if nxt is None:
                        return
                    cur[lane], pos[lane], started[lane] = self.sessions[nxt], 0, True


class Recommender(nn.Module):
    def __init__(self, items, dim, dropout):
        super().__init__()
        self.emb = nn.Embedding(items, dim)
        self.cell = nn.GRUCell(dim, dim)
        self.drop = nn.Dropout(dropout)
        self.out = nn.Linear(dim, items)

    def forward(self, item, state):
        state = self.cell(self.drop(self.emb(item)), state)
        return self.out(self.drop(state)), state


@torch.no_grad()
def evaluate(model, loader, dim):
    model.eval()
    state = torch.zeros(loader.lanes, dim)
    loss, hit, mrr, n = 0.0, 0, 0.0, 0
    for item, target, started in loader:
        state = state.masked_fill(started[:, None], 0.0)
        logits, state = model(item, state)
        rank = (logits > logits.gather(1, target[:, None])).sum(1) + 1
        loss += F.cross_entropy(logits, target, reduction="sum").item()
        hit += (rank <= 20).sum().item()
        mrr += (1.0 / rank).where(rank <= 20, torch.zeros(())).sum().item()
        n += len(target)
    return loss / n, hit / n, mrr / n


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--items", type=int, default=400)
    p.add_argument("--sessions", type=int, default=2400)
    p.add_argument("--lanes", type=int, default=32)
    p.add_argument("--dim", type=int, default=64)
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--lr", type=float, default=4e-3)
    p.add_argument("--dropout", type=float, default=0.3)
    p.add_argument("--seed", type=int, default=13)
    args = p.parse_args()

    set_seed(args.seed)
    acc = Accelerator(cpu=True)
    sessions = make_sessions(args.sessions, args.items, seed=1)
    train = sessions
    valid = SessionParallel(make_sessions(400, args.items, seed=2), args.lanes)
    clicks = sum(len(s) for s in train)
    popular = np.bincount(np.concatenate([s[1:] for s in train]), minlength=args.items)
    top20 = np.argsort(-popular)[:20]
    base = np.mean(np.isin(np.concatenate([s[1:] for s in valid.sessions]), top20))
    acc.print(f"{len(train)} sessions, {clicks} clicks, {args.items} items, most popular 20: recall@20 {base:.3f}")

    model = Recommender(args.items, args.dim, args.dropout)
    opt = torch.optim.Adagrad(model.parameters(), lr=args.lr * 10)
    model, opt = acc.prepare(model, opt)
    rng = np.random.default_rng(args.seed)
    for epoch in range(1, args.epochs + 1):
        model.train()
        loader = SessionParallel(train, args.lanes, order=rng.permutation(len(train)))
        state = torch.zeros(args.lanes, args.dim, device=acc.device)
        run, step = 0.0, 0
        for item, target, started in loader:
            state = state.detach().masked_fill(started[:, None], 0.0)
            logits, state = model(item, state)
            loss = F.cross_entropy(logits, target)
            acc.backward(loss)
            opt.step()
            opt.zero_grad()
            run, step = run + loss.item(), step + 1
            if step % 200 == 0:
                acc.print(f"  epoch {epoch} step {step:4d}  loss {run / 200:.4f}")
                run = 0.0
        vl, recall, mrr = evaluate(model, valid, args.dim)
        acc.print(f"epoch {epoch}  valid loss {vl:.4f}  recall@20 {recall:.3f}  mrr@20 {mrr:.3f}")


if __name__ == "__main__":
    main()
