"""Sentence type from a window of 32 tokens, mean-pooled Transformer features."""
import json
import torch
from torch import nn, optim

SEQ = 32
conf = dict(vocab=60, dim=32, classes=3, batch=32, lr=2e-3, updates=400, print_every=20)


def corpus(n, seed):
    g = torch.Generator().manual_seed(seed)
    tok = torch.randint(6, conf["vocab"], (n, SEQ), generator=g)
    kind = torch.randint(0, 3, (n,), generator=g)
    for c in range(4):
        where = torch.randint(0, SEQ, (n,), generator=g)
        tok[torch.arange(n), where] = 3 + kind
    length = torch.randint(16, SEQ + 1, (n,), generator=g)
    pad = torch.arange(SEQ)[None] >= length[:, None]
    tok[pad] = 0
    tok[torch.arange(n), 0] = 3 + kind
    return tok, kind


class Pooled(nn.Module):
    def __init__(self):
        super().__init__()
        d = conf["dim"]
        self.emb = nn.Embedding(conf["vocab"], d, padding_idx=0)
        self.mix = nn.MultiheadAttention(d, 4, batch_first=True)
        self.norm = nn.LayerNorm(d)
        self.ff = nn.Sequential(nn.Linear(d, 64), nn.GELU(), nn.Linear(64, d))
        self.out = nn.Linear(d, conf["classes"])

    def forward(self, tok):
        keep = (tok != 0).float().unsqueeze(-1)
        h = self.emb(tok)
        a, _ = self.mix(h, h, h, key_padding_mask=tok == 0, need_weights=False)
        h = self.norm(h + a)
        h = h + self.ff(h)
        pooled = (h * keep).sum(0) / keep.sum(0).clamp(min=1)
        return self.out(pooled)


def main():
    torch.manual_seed(42)
    tok, kind = corpus(4096, 0)
    net = Pooled()
    opt = optim.Adam(net.parameters(), lr=conf["lr"])
    seen, right, total = 0, 0, 0.0
    order = torch.randperm(len(tok)).split(conf["batch"])
    for u in range(1, conf["updates"] + 1):
        idx = order[(u - 1) % len(order)]
        score = net(tok[idx])
        nll = nn.functional.cross_entropy(score, kind[idx])
        opt.zero_grad()
        nll.backward()
        opt.step()
        seen += len(idx)
        right += (score.argmax(-1) == kind[idx]).sum().item()
        total += nll.item()
        if u % conf["print_every"] == 0:
            print(json.dumps({"update": u, "nll": round(total / conf["print_every"], 4), "acc": round(right / seen, 3)}))
            seen, right, total = 0, 0, 0.0


if __name__ == "__main__":
    main()
