"""Rating prediction from free text comments (many customers leave the comment field empty)."""
import argparse
import logging

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

logging.basicConfig(format="%(levelname)s | %(message)s", level=logging.INFO)
log = logging.getLogger("ratings")


class Comments(Dataset):
    def __init__(self, n, vocab, max_len, p_empty, seed):
        rng = np.random.default_rng(seed)
        self.polarity = np.random.default_rng(99).normal(0, 1, vocab)
        self.rows, self.meta, self.stars = [], [], []
        for _ in range(n):
            k = 0 if rng.random() < p_empty else int(rng.integers(3, max_len + 1))
            words = rng.integers(1, vocab, size=k)
            meta = rng.normal(0, 1, 4)
            score = (self.polarity[words].mean() * 2.5 if k else 0.0) + 0.6 * meta[0] - 0.4 * meta[2]
            self.rows.append(words)
            self.meta.append(meta)
            self.stars.append(score + 0.1 * rng.normal())

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i], self.meta[i], self.stars[i]


def collate(batch):
    width = max(1, max(len(r) for r, _, _ in batch))
    ids = torch.zeros(len(batch), width, dtype=torch.long)
    for i, (r, _, _) in enumerate(batch):
        ids[i, : len(r)] = torch.from_numpy(r)
    meta = torch.tensor(np.stack([m for _, m, _ in batch]), dtype=torch.float32)
    y = torch.tensor([s for _, _, s in batch], dtype=torch.float32)
    return ids, meta, y


class RatingNet(nn.Module):
    def __init__(self, vocab, dim=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.proj = nn.Linear(dim, dim)
        self.head = nn.Sequential(nn.Linear(dim + 4, 64), nn.GELU(), nn.Linear(64, 1))

    def pool(self, ids):
        keep = (ids != 0).float().unsqueeze(-1)
        count = keep.sum(1)
        summed = (self.proj(self.emb(ids)) * keep).sum(1)
        avg = summed / count
        return torch.where(count > 0, avg, torch.zeros_like(avg))

    def forward(self, ids, meta):
        return self.head(torch.cat([self.pool(ids), meta], dim=-1)).squeeze(-1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=400)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--p-empty", type=float, default=0.003)
    ap.add_argument("--vocab", type=int, default=400)
    args = ap.parse_args()
    torch.manual_seed(1)

    ds = Comments(4000, args.vocab, 14, args.p_empty, seed=0)
    dl = DataLoader(ds, batch_size=32, shuffle=True, collate_fn=collate)
    net = RatingNet(args.vocab)
    opt = torch.optim.AdamW(net.parameters(), lr=args.lr)
    log.info("%d comments, %d parameters", len(ds), sum(p.numel() for p in net.parameters()))

    step = 0
    while step < args.steps:
        for ids, meta, y in dl:
            pred = net(ids, meta)
            loss = nn.functional.smooth_l1_loss(pred, y)
            opt.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            if step < 12 or step % 40 == 0:
                log.info("step %4d | loss %.4f | |g| %.3f | tokens %d", step, loss.item(), norm.item(), int((ids != 0).sum()))
            step += 1
            if step >= args.steps:
                break
    log.info("finished: last loss %.4f", loss.item())


if __name__ == "__main__":
    main()
