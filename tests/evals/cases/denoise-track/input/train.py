import csv
import time

import torch

from monitor import LayerMonitor, rss_mb
from tracknet import TrackNet


def tracks(n, length=256):
    v = torch.randn(n, 2, length).cumsum(2) * 0.05
    clean = v.cumsum(2)
    clean = (clean - clean.mean(2, keepdim=True)) / (clean.std(2, keepdim=True) + 1e-3)
    return clean + 0.3 * torch.randn_like(clean), clean


def main(iters=120):
    torch.manual_seed(6)
    net = TrackNet()
    monitor = LayerMonitor([(f"body.{i}", m) for i, m in enumerate(net.body)])
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    out = csv.writer(open("metrics.csv", "w", newline=""))
    out.writerow(["iter", "mse", "rss_mb", "sec_per_iter"])
    print(f"start rss {rss_mb():.0f} MB")
    t0 = time.time()
    for it in range(1, iters + 1):
        noisy, clean = tracks(24)
        mse = (net(noisy) - clean).square().mean()
        opt.zero_grad()
        mse.backward()
        opt.step()
        if it % 10 == 0:
            dt, t0 = (time.time() - t0) / 10, time.time()
            out.writerow([it, f"{mse.item():.5f}", f"{rss_mb():.0f}", f"{dt:.4f}"])
            print(f"iter {it:4d}  mse {mse.item():.4f}  rss {rss_mb():.0f} MB  {dt * 1000:.0f} ms/it")
    print("active share:", monitor.summary())


if __name__ == "__main__":
    main()
