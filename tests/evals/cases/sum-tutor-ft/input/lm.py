import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
        self.h = h

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.n2(x))


class CausalLM(nn.Module):
    def __init__(self, vocab, d=64, layers=2, heads=4, ctx=48):
        super().__init__()
        self.ctx = ctx
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Embedding(ctx, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(d)

    def forward(self, ids, labels=None):
        h = self.tok(ids) + self.pos(torch.arange(ids.shape[1]))
        for b in self.blocks:
            h = b(h)
        logits = self.norm(h) @ self.tok.weight.t()
        if labels is None:
            return logits
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)

    @torch.no_grad()
    def generate(self, ids, max_new, eos):
        for _ in range(max_new):
            nxt = int(self(torch.tensor([ids[-self.ctx :]]))[0, -1].argmax())
            ids = ids + [nxt]
            if nxt == eos:
                break
        return ids
