"""Click-through prediction for display ads (base rate around 1 percent)."""
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(1)
torch.manual_seed(1)
N_SITES, N_ADS = 50, 80
SITE, AD = rng.normal(0, 0.9, N_SITES), rng.normal(0, 0.9, N_ADS)


def impressions(n):
    s, a = rng.integers(0, N_SITES, n), rng.integers(0, N_ADS, n)
    p = 1 / (1 + np.exp(-(-5.2 + SITE[s] + AD[a])))
    return torch.from_numpy(s), torch.from_numpy(a), torch.from_numpy((rng.random(n) < p).astype(np.float32))


class Ctr(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.site, self.ad = nn.Embedding(N_SITES, dim), nn.Embedding(N_ADS, dim)
        self.mlp = nn.Sequential(nn.Linear(2 * dim, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, s, a):
        return self.mlp(torch.cat([self.site(s), self.ad(a)], 1)).squeeze(1)


def auc(score, y):
    rank = score.argsort().argsort().double() + 1
    p = y.sum().double()
    return ((rank[y == 1].sum() - p * (p + 1) / 2) / (p * (len(y) - p))).item()


def entropy(p):
    return float(-(p * np.log(p) + (1 - p) * np.log(1 - p)))


def main():
    tr, va = impressions(80000), impressions(40000)
    model = Ctr()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-6)
    print(f"train {len(tr[2])} impressions, {int(tr[2].sum())} clicks; constant prediction scores {entropy(va[2].mean().item()):.4f}")
    for epoch in range(8):
        model.train()
        total = 0.0
        for step, idx in enumerate(torch.randperm(len(tr[2])).split(256)):
            loss = nn.functional.binary_cross_entropy_with_logits(model(tr[0][idx], tr[1][idx]), tr[2][idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
            if epoch == 0 and step in (0, 10, 20, 40, 80, 160, 300):
                print(f"  step {step:4d} loss {loss.item():.4f}")
        model.eval()
        with torch.no_grad():
            out = model(va[0], va[1])
        vl = nn.functional.binary_cross_entropy_with_logits(out, va[2]).item()
        print(f"epoch {epoch} train {total / len(tr[2]):.4f} val {vl:.4f} accuracy {((out > 0) == (va[2] > 0)).float().mean():.4f} "
              f"auc {auc(out, va[2]):.3f} mean_p {out.sigmoid().mean():.4f} base {va[2].mean():.4f}")


if __name__ == "__main__":
    main()
