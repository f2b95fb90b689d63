"""Character model on pseudo log lines; constant batch stream, AdamW, cosine."""
import argparse
import json
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

ap = argparse.ArgumentParser()
ap.add_argument("--num-steps", type=int, default=500)
ap.add_argument("--peak-lr", type=float, default=4e-3)
ap.add_argument("--beta2", type=float, default=0.99)
ap.add_argument("--clip", type=float, default=1.0)


class GRUModel(nn.Module):
    def __init__(self, vocab=40, d=48):
        super().__init__()
        self.e = nn.Embedding(vocab, d)
        self.r = nn.GRU(d, d, batch_first=True)
        self.o = nn.Linear(d, vocab)

    def forward(self, x):
        return self.o(self.r(self.e(x))[0])


class LogLines:
    """Markov text. A block of rotated, unfamiliar text is part of the corpus (logs of another host)."""

    def __init__(self, vocab=40):
        g = torch.Generator().manual_seed(4)
        self.next = torch.stack([torch.randperm(vocab, generator=g)[:3] for _ in range(vocab)])
        self.other = torch.stack([torch.randperm(vocab, generator=g)[:3] for _ in range(vocab)])
        self.g, self.vocab = g, vocab

    def batch(self, step, n=16, t=32):
        foreign = 300 <= step < 304
        table = self.other if foreign else self.next
        rows = [torch.randint(0, self.vocab, (n,), generator=self.g)]
        for _ in range(t):
            pick = torch.multinomial(torch.tensor([0.7, 0.2, 0.1]), n, True, generator=self.g)
            rows.append(table[rows[-1], pick])
        return torch.stack(rows, 1)


def main():
    a = ap.parse_args()
    torch.manual_seed(0)
    net, data = GRUModel(), LogLines()
    opt = torch.optim.AdamW(net.parameters(), lr=a.peak_lr, betas=(0.9, a.beta2))
    for step in range(a.num_steps):
        lr = a.peak_lr * min((step + 1) / 30, 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * step / a.num_steps)))
        opt.param_groups[0]["lr"] = lr
        ids = data.batch(step)
        bpc = F.cross_entropy(net(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()) / math.log(2)
        opt.zero_grad()
        bpc.backward()
        gn = nn.utils.clip_grad_norm_(net.parameters(), a.clip)
        opt.step()
        if step % 5 == 0 or step == a.num_steps - 1:
            print(json.dumps({"step": step, "bpc": round(bpc.item(), 4), "grad_norm": round(gn.item(), 4), "lr": lr}))


if __name__ == "__main__":
    main()
