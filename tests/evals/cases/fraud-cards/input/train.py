"""Card fraud detection, 1.5 percent positives, LightGBM-style log lines."""
import argparse
import time
import torch
import torch.nn as nn


def transactions(n, seed):
    g = torch.Generator().manual_seed(70)
    d = torch.randn(20, generator=g)
    d = 1.3 * d / d.norm()
    g = torch.Generator().manual_seed(seed)
    fraud = (torch.rand(n, generator=g) < 0.015).float()
    x = torch.randn(n, 20, generator=g) + 1.6 * fraud[:, None] * d
    return x, fraud


def scores(net, x, y, thr=0.5):
    with torch.no_grad():
        p = net(x).sigmoid()
    hit = p > thr
    tp = (hit * y).sum().item()
    rank = p.argsort().argsort().float() + 1
    pos = y.sum()
    auc = ((rank * y).sum() - pos * (pos + 1) / 2) / (pos * (len(y) - pos))
    return dict(accuracy=(hit.float() == y).float().mean().item(), recall=tp / max(1, int(y.sum())),
                flagged=int(hit.sum()), auc=auc.item())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rounds", type=int, default=300)
    ap.add_argument("--batch", type=int, default=256)
    ap.add_argument("--eval-every", type=int, default=20)
    a = ap.parse_args()
    torch.manual_seed(0)
    x, y = transactions(20000, 1)
    xv, yv = transactions(8000, 2)
    net = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    t0 = time.time()
    for r in range(1, a.rounds + 1):
        idx = torch.randint(0, len(x), (a.batch,))
        loss = criterion(net(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if r % a.eval_every == 0:
            s = scores(net, xv, yv)
            print(f"[{r}]\ttrain's binary_logloss: {loss.item():.5f}\tvalid's accuracy: {s['accuracy']:.5f}"
                  f"\tvalid's recall: {s['recall']:.4f}\tvalid's auc: {s['auc']:.4f}\tflagged: {s['flagged']}/{len(xv)} ({int(yv.sum())} fraud)")
    print(f"[LightTorch] finished in {time.time() - t0:.2f} s")


if __name__ == "__main__":
    main()
