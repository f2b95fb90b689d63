import copy
import numpy as np
import torch
from torch import nn
from grid import Floor

torch.manual_seed(4); torch.set_num_threads(1)
rng = np.random.default_rng(4)
N, CAP, STEPS, GAMMA = 16, 30000, 2200, 0.95
env = Floor(N, 4)
q = nn.Sequential(nn.Linear(24, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 4))
nn.init.zeros_(q[-1].weight); nn.init.zeros_(q[-1].bias)
tgt = copy.deepcopy(q)
opt = torch.optim.Adam(q.parameters(), 1e-3)
buf = {"s": np.zeros((CAP, 24), np.float32), "a": np.zeros(CAP, np.int64), "r": np.zeros(CAP, np.float32),
       "s2": np.zeros((CAP, 24), np.float32), "d": np.zeros(CAP, np.float32)}
count = 0
ep_ret, done_ret, done_ok, losses, qs = np.zeros(N), [], [], [], []
for it in range(1, STEPS + 1):
    s = env.obs()
    eps = max(0.05, 1 - it / 1000)
    with torch.no_grad():
        a = q(torch.from_numpy(s)).argmax(1).numpy()
    a = np.where(rng.random(N) < eps, rng.integers(0, 4, N), a)
    r, s2, there, over = env.step(a)
    k = (count + np.arange(N)) % CAP
    for name, v in zip(("s", "a", "r", "s2", "d"), (s, a, r, s2, there)):
        buf[name][k] = v
    count += N
    ep_ret += r
    for j in np.flatnonzero(over):
        done_ret.append(ep_ret[j]); done_ok.append(there[j]); ep_ret[j] = 0
    if count >= 1600:
        i = rng.integers(0, min(count, CAP), 128)
        b = {n: torch.from_numpy(v[i]) for n, v in buf.items()}
        with torch.no_grad():
            y = b["r"] + GAMMA * (1 - b["d"]) * tgt(b["s2"]).max(1).values
        p = q(b["s"]).gather(1, b["a"][:, None])[:, 0]
        loss = nn.functional.mse_loss(p, y)
        opt.zero_grad(); loss.backward(); opt.step()
        losses.append(loss.item()); qs.append(p.mean().item())
        with torch.no_grad():
            for x, w in zip(tgt.parameters(), q.parameters()):
                x.lerp_(w, 0.01)
    if it % 200 == 0:
        print(f"it {it} eps {eps:.2f} buffer {min(count, CAP)} episodes {len(done_ret)} return {np.mean(done_ret[-150:]):+.3f} "
              f"delivered {np.mean(done_ok[-150:]):.2f} td {np.mean(losses[-200:]):.5f} mean q {np.mean(qs[-200:]):+.3f}", flush=True)
