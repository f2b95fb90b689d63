import argparse, copy
import numpy as np
import torch
import yaml
from diffusion import EpsNet, Schedule

ap = argparse.ArgumentParser(); ap.add_argument("--config", default="ddpm.yaml")
c = yaml.safe_load(open(ap.parse_args().config))
torch.manual_seed(c["seed"]); torch.set_num_threads(1)
X = torch.from_numpy(np.load(c["catalogue"]))
sch = Schedule(**c["diffusion"])
net = EpsNet(X.shape[1], T=sch.T, **c["network"])
ema = copy.deepcopy(net).requires_grad_(False)
o = c["optim"]
opt = torch.optim.Adam(net.parameters(), o["lr"])
lr = torch.optim.lr_scheduler.CosineAnnealingLR(opt, o["steps"])


def sliced_w1(a, b, n=64):
    g = torch.Generator().manual_seed(0)
    d = torch.randn(a.shape[1], n, generator=g)
    d /= d.norm(dim=0)
    return (torch.sort(a @ d, 0)[0] - torch.sort(b @ d, 0)[0]).abs().mean().item()


run = 0.0
for step in range(1, o["steps"] + 1):
    x0 = X[torch.randint(len(X), (o["batch"],))]
    t = torch.randint(sch.T, (o["batch"],))
    eps = torch.randn_like(x0)
    loss = (net(sch.noise(x0, t, eps), t) - eps).square().mean()
    opt.zero_grad(); loss.backward(); opt.step(); lr.step()
    with torch.no_grad():
        for p, q in zip(ema.parameters(), net.parameters()):
            p.lerp_(q, 1 - o["ema"])
    run += loss.item()
    if step % 500 == 0:
        s = sch.sample(ema, 2500, X.shape[1], torch.Generator().manual_seed(1))
        m = " ".join(f"{k}:{a:.2f}/{b:.2f}" for k, a, b in zip(c["columns"], s.mean(0), X.mean(0)))
        print(f"step {step} eps-mse {run/500:.4f} sliced-W1 {sliced_w1(s, X[:2500]):.4f} mean sample/catalogue {m} std {s.std(0).mean():.2f}/{X.std(0).mean():.2f}", flush=True)
        run = 0.0
