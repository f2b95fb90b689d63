"""Cox network on follow-up data of several hospitals, one stratum per hospital."""
import argparse
import csv
from pathlib import Path

import torch
from torch import nn

COVARIATES = ["age", "bmi", "marker_a", "marker_b", "smoker", "stage"]


def read_site(path):
    """The export lists the patients of a site by follow-up time, longest first."""
    with open(path, newline="") as f:
        rows = list(csv.DictReader(f))
    x = torch.tensor([[float(r[c]) for c in COVARIATES] for r in rows])
    t = torch.tensor([float(r["months"]) for r in rows])
    e = torch.tensor([float(r["event"]) for r in rows])
    return x, t, e


def cox_loss(risk, event):
    """Breslow partial likelihood; the risk set of a row is the row itself and all before it."""
    log_set = torch.logcumsumexp(risk, 0)
    return -((risk - log_set) * event).sum() / event.sum().clamp_min(1)


def concordance(risk, t, e):
    before = (t[:, None] < t[None]) & (e[:, None] == 1)
    higher = (risk[:, None] > risk[None]).float() + 0.5 * (risk[:, None] == risk[None]).float()
    return (higher * before).sum().item() / before.sum().item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--sites", default="sites")
    p.add_argument("--test", default="test.csv")
    p.add_argument("--epochs", type=int, default=320)
    p.add_argument("--lr", type=float, default=1e-2)
    p.add_argument("--seed", type=int, default=6)
    args = p.parse_args()
    torch.manual_seed(args.seed)
    sites = {f.stem: read_site(f) for f in sorted(Path(args.sites).glob("*.csv"))}
    test = read_site(args.test)
    all_x = torch.cat([s[0] for s in sites.values()])
    mean, std = all_x.mean(0), all_x.std(0)
    print("  ".join(f"{k}: {len(s[0])} patients, {int(s[2].sum())} events" for k, s in sites.items()), flush=True)

    model = nn.Sequential(nn.Linear(len(COVARIATES), 16), nn.Tanh(), nn.Linear(16, 1, bias=False))
    opt = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=1e-3)
    weight = {k: s[2].sum() for k, s in sites.items()}
    norm = sum(weight.values())
    for epoch in range(args.epochs + 1):
        losses = {k: cox_loss(model((x - mean) / std).squeeze(-1), e) for k, (x, t, e) in sites.items()}
        loss = sum(weight[k] * v for k, v in losses.items()) / norm
        if epoch % 32 == 0:
            with torch.no_grad():
                c = concordance(model((test[0] - mean) / std).squeeze(-1), test[1], test[2])
            per = "  ".join(f"{k} {v.item():.3f}" for k, v in losses.items())
            print(f"epoch {epoch:3d}  loss {loss.item():.4f}  ({per})  test c-index {c:.3f}", flush=True)
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    main()
