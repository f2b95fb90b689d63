import argparse
import numpy as np
import torch
from worker import Worker

torch.set_num_threads(1)
p = argparse.ArgumentParser()
p.add_argument("--workers", type=int, default=4)
p.add_argument("--epochs", type=int, default=8)
p.add_argument("--bs", type=int, default=32, help="per worker")
p.add_argument("--lr", type=float, default=1e-2)
p.add_argument("--wd", type=float, default=0.05)
p.add_argument("--seed", type=int, default=5)
cfg = p.parse_args()


def all_reduce_mean(workers):
    for ps in zip(*(w.model.parameters() for w in workers)):
        g = torch.stack([q.grad for q in ps]).mean(0)
        for q in ps:
            q.grad.copy_(g)


def auc(score, y):
    r = score.argsort().argsort().double() + 1
    n1 = y.sum()
    return ((r[y > 0].sum() - n1 * (n1 + 1) / 2) / (n1 * (len(y) - n1))).item()


raw = np.load("clicks.npz")
data = {k: torch.from_numpy(raw[k].astype(np.int64)) for k in ("user", "ad", "hour", "device")}
data["click"] = torch.from_numpy(raw["click"].astype(np.float32))
n = len(data["click"])
perm = np.random.default_rng(0).permutation(n)
hold, rows = perm[:1500], perm[1500:]
workers = [Worker(r, cfg.workers, data, rows, cfg) for r in range(cfg.workers)]
test = {k: v[hold] for k, v in data.items()}
print(f"{cfg.workers} workers, {len(rows)} training rows, {len(workers[0].rows)} rows per worker, holdout {len(hold)}")
for ep in range(cfg.epochs):
    losses = []
    for bs in zip(*(w.batches(cfg.bs) for w in workers)):
        losses.append(np.mean([w.backward(b) for w, b in zip(workers, bs)]))
        all_reduce_mean(workers)
        for w in workers:
            w.opt.step()
    with torch.no_grad():
        s = workers[0].model(test)
        hl = torch.nn.functional.binary_cross_entropy_with_logits(s, test["click"]).item()
    drift = max((a - b).abs().max().item() for a, b in zip(workers[0].model.parameters(), workers[-1].model.parameters()))
    print(f"epoch {ep} steps {len(losses)} logloss {np.mean(losses):.4f} holdout {hl:.4f} auc {auc(s, test['click']):.4f} replica drift {drift:.1e}", flush=True)
