"""Physics-informed net for u_t = a u_xx on [0,1]x[0,1], u(x,0)=sin(pi x), u(0,t)=u(1,t)=0."""
import json
import math

import torch
import torch.nn as nn

torch.manual_seed(0)
A, STEPS = 0.1, 500


class Field(nn.Module):
    def __init__(self, w=32):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(2, w), nn.Tanh(), nn.Linear(w, w), nn.Tanh(), nn.Linear(w, 1))

    def forward(self, x, t):
        return self.f(torch.cat([x, t], 1))


def residual(net, n=128):
    x = torch.rand(n, 1, requires_grad=True)
    t = torch.rand(n, 1, requires_grad=True)
    u = net(x, t)
    one = torch.ones_like(u)
    u_x, u_t = torch.autograd.grad(u, (x, t), one, create_graph=True)
    u_xx, = torch.autograd.grad(u_x, x, one, create_graph=True)
    return u_t - A * u_xx


def boundary(net, n=64):
    x, t, zero = torch.rand(n, 1), torch.rand(n, 1), torch.zeros(n, 1)
    start = (net(x, zero) - torch.sin(math.pi * x)).pow(2).mean()
    walls = net(zero, t).pow(2).mean() + net(zero + 1, t).pow(2).mean()
    return start, walls


@torch.no_grad()
def rel_error(net):
    s = torch.linspace(0, 1, 41)
    x, t = (v.reshape(-1, 1) for v in torch.meshgrid(s, s, indexing="ij"))
    true = torch.exp(-A * math.pi ** 2 * t) * torch.sin(math.pi * x)
    return ((net(x, t) - true).norm() / true.norm()).item()


net = Field()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
sched = torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.02, STEPS)
for step in range(1, STEPS + 1):
    pde = residual(net).pow(2).mean()
    start, walls = boundary(net)
    opt.zero_grad()
    (pde + 10 * start + 10 * walls).backward()
    opt.step()
    sched.step()
    if step % 25 == 0 or step == 1:
        print(json.dumps({"step": step, "pde": round(pde.item(), 5), "ic": round(start.item(), 6), "bc": round(walls.item(), 6),
                          "lr": round(opt.param_groups[0]["lr"], 5), "rel_err": round(rel_error(net), 4)}))
print("relative error %.4f" % rel_error(net))
