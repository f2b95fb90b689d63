"""Tiny decoder in half precision on random-walk symbols."""
import argparse
import logging
import torch
import torch.nn as nn
import torch.nn.functional as F

logging.basicConfig(level="INFO", format="%(asctime)s - %(name)s - %(levelname)s - %(message)s")
log = logging.getLogger("decoder")


class CausalAttention(nn.Module):
    def __init__(self, d, heads, max_len):
        super().__init__()
        self.h = heads
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.register_buffer("future", torch.triu(torch.ones(max_len, max_len, dtype=torch.bool), 1))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        score = q @ k.transpose(-1, -2) / (d // self.h) ** 0.5
        score = score.masked_fill(self.future[:t, :t], -1e9)
        return self.o((score.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, d, heads, max_len):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.att = CausalAttention(d, heads, max_len)
        self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        x = x + self.att(self.n1(x))
        return x + self.ff(self.n2(x))


class Decoder(nn.Module):
    def __init__(self, vocab=24, d=32, layers=2, heads=4, max_len=32):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Embedding(max_len, d)
        self.blocks = nn.Sequential(*[Block(d, heads, max_len) for _ in range(layers)])
        self.lm = nn.Linear(d, vocab)

    def forward(self, ids):
        x = self.tok(ids) + self.pos(torch.arange(ids.shape[1]))
        return self.lm(self.blocks(x))


def walks(n, t, g, vocab=24):
    step = torch.randint(-1, 2, (n, t), generator=g)
    return (torch.randint(0, vocab, (n, 1), generator=g) + step.cumsum(1)) % vocab


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dtype", choices=["float32", "bfloat16", "float16"], default="float16")
    ap.add_argument("--steps", type=int, default=150)
    ap.add_argument("--lr", type=float, default=0.05)
    args = ap.parse_args()
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    model = Decoder().to(getattr(torch, args.dtype))
    log.info("model has %d parameters, dtype %s", sum(p.numel() for p in model.parameters()), args.dtype)
    opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    for step in range(args.steps):
        ids = walks(16, 25, g)
        logits = model(ids[:, :-1]).float()
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            log.info("step=%d ppl=%.3f", step, loss.exp().item())


if __name__ == "__main__":
    main()
