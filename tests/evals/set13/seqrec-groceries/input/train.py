import argparse, collections
import torch, torch.nn as nn
from data import PAD, read_export, splits


class GRURec(nn.Module):
    def __init__(self, n_rows, dim=48):
        super().__init__()
        self.item = nn.Embedding(n_rows, dim, padding_idx=PAD)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.proj = nn.Linear(dim, dim)
        self.bias = nn.Parameter(torch.zeros(n_rows))
        nn.init.normal_(self.item.weight, std=0.05)
        with torch.no_grad():
            self.item.weight[PAD].zero_()

    def forward(self, x):
        h, _ = self.gru(self.item(x))
        return self.proj(h) @ self.item.weight.T + self.bias


def evaluate(model, ctx, target, k, watch):
    model.eval()
    hits = torch.zeros(len(target), dtype=torch.bool)
    rec = collections.Counter()
    with torch.no_grad():
        for i in range(0, len(ctx), 512):
            s = model(ctx[i:i + 512])[:, -1]
            s[:, PAD] = float("-inf")
            top = s.topk(k, -1).indices
            hits[i:i + 512] = (top == target[i:i + 512, None]).any(1)
            rec.update(top.flatten().tolist())
    best = [(w, hits[target == w].float().mean().item(), rec[w]) for w in watch if (target == w).any()]
    return hits.float().mean().item(), best


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--folder", default="export")
    ap.add_argument("--max-len", type=int, default=20)
    ap.add_argument("--epochs", type=int, default=12)
    ap.add_argument("--lr", type=float, default=4e-3)
    a = ap.parse_args()
    torch.manual_seed(1); torch.set_num_threads(1)
    index, users, seqs = read_export(a.folder)
    train, ctx, target = splits(seqs, a.max_len)
    sku = {v: k for k, v in index.items()}
    top = [i for i, _ in collections.Counter(j for s in seqs for j in s).most_common(3)]
    print(f"{len(seqs)} users, {len(index)} items, best sellers {[sku[i] for i in top]}")
    model = GRURec(len(index) + 1)
    ce = nn.CrossEntropyLoss(ignore_index=PAD)
    opt = torch.optim.Adam(model.parameters(), a.lr)
    for ep in range(a.epochs):
        model.train(); run = 0.0; nb = 0
        for b in train[torch.randperm(len(train))].split(128):
            out = model(b[:, :-1])
            loss = ce(out.flatten(0, 1), b[:, 1:].flatten())
            opt.zero_grad(); loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step(); run += loss.item(); nb += 1
        hr, best = evaluate(model, ctx, target, 10, top)
        msg = "  ".join(f"{sku[w]} hit {h:.2f} shown {c}x" for w, h, c in best)
        print(f"epoch {ep} loss {run/nb:.3f} HR@10 {hr:.3f} | {msg}", flush=True)
