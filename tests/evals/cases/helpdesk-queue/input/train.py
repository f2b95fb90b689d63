import argparse
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

from tickets import PAD, QUEUES, Collator, corpus


class Router(nn.Module):
    def __init__(self, vocab=500, d=32, heads=2, layers=1):
        super().__init__()
        self.embed = nn.Embedding(vocab, d, padding_idx=PAD)
        enc = nn.TransformerEncoderLayer(d, heads, 2 * d, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(enc, layers, enable_nested_tensor=False)
        self.cls = nn.Linear(d, len(QUEUES))

    def forward(self, ids, keep):
        h = self.encoder(self.embed(ids), src_key_padding_mask=~keep)
        pooled = (h * keep[..., None]).sum(1) / keep.sum(1, keepdim=True)
        return self.cls(pooled)


class Clock:
    """wall time split into waiting for data / forward / backward+update"""

    def __init__(self):
        self.parts = dict.fromkeys(("data", "fwd", "bwd"), 0.0)
        self.t = time.perf_counter()

    def lap(self, name):
        now = time.perf_counter()
        self.parts[name] += now - self.t
        self.t = now

    def report(self, steps):
        text = " ".join(f"{k} {1e3 * v / steps:.0f}ms" for k, v in self.parts.items())
        total = sum(self.parts.values())
        self.parts = dict.fromkeys(self.parts, 0.0)
        return text, total


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=32)
    ap.add_argument("--steps", type=int, default=60)
    ap.add_argument("--report", type=int, default=10)
    a = ap.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rows = corpus(2400, 3)
    loader = DataLoader(rows, batch_size=a.batch_size, shuffle=True, collate_fn=Collator(rows), drop_last=True)
    router = Router()
    opt = torch.optim.AdamW(router.parameters(), lr=3e-3)
    lengths = sorted(len(w) for w, _ in rows)
    print(f"{len(rows)} tickets, {sum(lengths)} words, median length {lengths[len(rows) // 2]}")
    clock, it, words = Clock(), iter(loader), 0
    for step in range(1, a.steps + 1):
        ids, keep, q = next(it)
        clock.lap("data")
        loss = F.cross_entropy(router(ids, keep), q)
        clock.lap("fwd")
        opt.zero_grad()
        loss.backward()
        opt.step()
        clock.lap("bwd")
        words += int(keep.sum())
        if step % a.report == 0:
            text, total = clock.report(a.report)
            print(f"step {step:3d} loss {loss.item():.3f} | {text} | {a.report * a.batch_size / total:.0f} tickets/s {words / total:.0f} words/s", flush=True)
            words = 0


if __name__ == "__main__":
    main()
