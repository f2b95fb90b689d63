"""Two-tower ranking of tracks for a listener: one true track against 99 sampled ones at test time."""
import tomllib

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class TwoTower(nn.Module):
    def __init__(self, users, items, dim):
        super().__init__()
        self.user = nn.Embedding(users, dim)
        self.item = nn.Embedding(items, dim)
        self.bias = nn.Embedding(items, 1)
        nn.init.normal_(self.user.weight, std=0.05)
        nn.init.normal_(self.item.weight, std=0.05)
        nn.init.zeros_(self.bias.weight)

    def forward(self, u, i):
        return (self.user(u)[:, None] * self.item(i)).sum(-1) + self.bias(i).squeeze(-1)


@torch.no_grad()
def rank_metrics(model, test, candidates, decimals, k):
    """Hit rate and NDCG at k with the scores as the serving index stores them."""
    items = torch.cat([test[:, 1:], candidates], 1)
    scores = torch.round(torch.sigmoid(model(test[:, 0], items)), decimals=decimals)
    rank = (scores[:, 1:] > scores[:, :1]).sum(1)
    hit = rank < k
    gain = torch.where(hit, 1.0 / torch.log2(rank + 2.0), torch.zeros(()))
    return hit.float().mean().item(), gain.mean().item()


def main():
    with open("settings.toml", "rb") as f:
        cfg = tomllib.load(f)
    t, s = cfg["train"], cfg["serving"]
    torch.manual_seed(t["seed"])
    train, test, cand = (torch.from_numpy(np.load(cfg["data"][k]).astype(np.int64)) for k in ("train", "test", "candidates"))
    users, items = int(train[:, 0].max()) + 1, int(max(train[:, 1].max(), cand.max(), test[:, 1].max())) + 1
    model = TwoTower(users, items, cfg["model"]["dim"])
    opt = torch.optim.Adam(model.parameters(), lr=t["lr"], weight_decay=t["weight_decay"])
    hr, ndcg = rank_metrics(model, test, cand, s["score_decimals"], s["top_k"])
    print(f"{users} listeners, {items} tracks, {len(train)} plays")
    print(f"untrained          HR@{s['top_k']} {hr:.3f}  NDCG {ndcg:.3f}", flush=True)
    for epoch in range(t["epochs"]):
        total = 0.0
        for idx in torch.randperm(len(train)).split(t["batch_size"]):
            u, pos = train[idx, 0], train[idx, 1:]
            neg = torch.randint(0, items, (len(idx), t["negatives"]))
            logits = model(u, torch.cat([pos, neg], 1))
            target = torch.zeros_like(logits)
            target[:, 0] = 1.0
            loss = F.binary_cross_entropy_with_logits(logits, target)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        hr, ndcg = rank_metrics(model, test, cand, s["score_decimals"], s["top_k"])
        print(f"epoch {epoch:2d}  loss {total / len(train):.4f}  HR@{s['top_k']} {hr:.3f}  NDCG {ndcg:.3f}", flush=True)


if __name__ == "__main__":
    main()
