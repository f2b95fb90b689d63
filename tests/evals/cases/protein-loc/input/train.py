"""Where in the cell does a protein go?  Short signal at the start of the sequence, transformer encoder."""
import random

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

AA = "ACDEFGHIKLMNPQRSTVWY"
PLACES = {"nucleus": "KKRK", "mitochondrion": "RLSR", "secreted": "LLAL", "peroxisome": "SKLA"}
MAXLEN = 96


def protein(rng, n=None):
    n = n or rng.choice([rng.randint(12, 20), rng.randint(60, MAXLEN)])
    place = rng.randrange(len(PLACES))
    s = [rng.choice(AA) for _ in range(n)]
    at = rng.randint(0, 6)
    s[at:at + 4] = list(PLACES.values())[place]
    if rng.random() < 0.15:  # the database is not free of errors
        place = rng.randrange(len(PLACES))
    return "".join(s), place


def make(n, seed, length=None):
    rng = random.Random(seed)
    return [protein(rng, length and rng.randint(*length)) for _ in range(n)]


def collate(batch):
    """Tokens padded with 0 to the longest of the batch, and a mask of the same shape: one where a residue is."""
    longest = max(len(s) for s, _ in batch)
    tokens = torch.zeros(len(batch), longest, dtype=torch.long)
    mask = torch.zeros(len(batch), longest)
    for i, (s, _) in enumerate(batch):
        tokens[i, :len(s)] = torch.tensor([AA.index(c) + 1 for c in s])
        mask[i, :len(s)] = 1.0
    return tokens, mask, torch.tensor([p for _, p in batch])


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x, bias):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        att = q @ k.transpose(-1, -2) / (d // self.heads) ** 0.5 + bias
        x = x + self.proj((att.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.ff(self.n2(x))


class Locator(nn.Module):
    def __init__(self, dim=48, depth=2, heads=4):
        super().__init__()
        self.emb = nn.Embedding(len(AA) + 1, dim)
        self.pos = nn.Parameter(torch.randn(MAXLEN, dim) * 0.05)
        self.local = nn.Conv1d(dim, dim, 5, padding=2)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, len(PLACES))

    def forward(self, tokens, mask):
        h = self.emb(tokens) + self.pos[:tokens.shape[1]]
        h = h + self.local(h.transpose(1, 2)).transpose(1, 2)
        bias = mask[:, None, None, :]
        for block in self.blocks:
            h = block(h, bias)
        return self.head(self.norm(h).mean(1))


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hit = sum((model(t, m).argmax(-1) == y).sum().item() for t, m, y in loader)
    return hit / len(loader.dataset)


def main():
    torch.manual_seed(0)
    train = DataLoader(make(2000, 1, length=(12, 20)), batch_size=32, shuffle=True, collate_fn=collate)
    short = make(400, 2, length=(12, 20))
    mixed_in = make(20, 3, length=(90, 96))
    val_short = DataLoader(short, batch_size=40, collate_fn=collate)
    val_beside_long = DataLoader([p for i in range(20) for p in short[i * 20:i * 20 + 20] + [mixed_in[i]]], batch_size=21,
                                 collate_fn=collate)
    model = Locator()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    lossf = nn.CrossEntropyLoss()
    for epoch in range(4):
        model.train()
        run = 0.0
        for i, (t, m, y) in enumerate(train, 1):
            loss = lossf(model(t, m), y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            run += loss.item()
        print(f"epoch={epoch} loss={run / i:.4f} acc_short_alone={accuracy(model, val_short):.3f} "
              f"acc_short_beside_long={accuracy(model, val_beside_long):.3f}")
    model.eval()
    with torch.no_grad():
        alone = model(*collate(short[:1])[:2]).softmax(-1)
        beside = model(*collate([short[0], mixed_in[0]])[:2]).softmax(-1)[:1]
    print("same protein alone      ", [round(v, 3) for v in alone[0].tolist()])
    print("same protein beside long", [round(v, 3) for v in beside[0].tolist()])
    print(f"max change {(alone - beside).abs().max():.4f}")


if __name__ == "__main__":
    main()
