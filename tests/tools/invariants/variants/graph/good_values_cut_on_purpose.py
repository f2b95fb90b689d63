"""Healthy cuts: weights from losses, baselines, old log-probabilities, targets."""
import torch
from torch import nn
import torch.nn.functional as F
from torch.distributions import Categorical, kl_divergence

class AC(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 16)
        self.pi = nn.Linear(16, 2)
        self.v = nn.Linear(16, 1)
    def dist(self, o):
        return Categorical(logits=self.pi(torch.relu(self.body(o))))
    def value(self, o):
        return self.v(torch.relu(self.body(o))).squeeze(-1)

def balanced(net, data):
    opt = torch.optim.Adam(net.parameters())
    for x, a, b in data:
        la, lb = F.mse_loss(net(x)[0], a), F.cross_entropy(net(x)[1], b)
        w = torch.tensor([la, lb])
        w = w / w.sum()
        loss = w[0] * la + w[1] * lb
        opt.zero_grad(); loss.backward(); opt.step()

def ppo(env, steps):
    net = AC()
    opt = torch.optim.Adam(net.parameters())
    for it in range(steps):
        obs, acts, lps, vals, rews = [], [], [], [], []
        o = env.reset()
        for t in range(128):
            d = net.dist(o)
            a = d.sample()
            obs.append(o); acts.append(a); lps.append(d.log_prob(a)); vals.append(net.value(o))
            o, r, done, _ = env.step(a.item())
            rews.append(r)
        old = torch.tensor(lps)
        adv = torch.tensor(rews) - torch.tensor(vals)
        O, A = torch.stack(obs), torch.stack(acts)
        before = net.dist(O)
        for _ in range(4):
            d = net.dist(O)
            ratio = (d.log_prob(A) - old).exp()
            loss = -(ratio * adv).mean() + F.mse_loss(net.value(O), torch.tensor(rews)) + kl_divergence(before, d).mean()
            opt.zero_grad(); loss.backward(); opt.step()

class Enc(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(3, 3)
        self.k = nn.Linear(3, 3)
        for p in self.k.parameters():
            p.requires_grad_(False)
    @torch.no_grad()
    def move(self):
        for a, b in zip(self.k.parameters(), self.q.parameters()):
            a.mul_(0.99).add_(b, alpha=0.01)
    def forward(self, x, y):
        q = self.q(x)
        with torch.no_grad():
            self.move()
            k = self.k(y)
        return (q * k).sum(-1)

def moco(data):
    m = Enc()
    opt = torch.optim.SGD(m.parameters(), 0.1)
    for x, y in data:
        loss = -m(x, y).mean()
        opt.zero_grad(); loss.backward(); opt.step()

def alternating(data):
    g, d = nn.Linear(3, 3), nn.Linear(3, 1)
    og = torch.optim.Adam([{"params": g.parameters()}]); od = torch.optim.Adam(d.parameters())
    for x in data:
        with torch.no_grad():
            fake = g(x)
        ld = F.softplus(d(fake)).mean() + F.softplus(-d(x)).mean()
        od.zero_grad(); ld.backward(); od.step()
        lg = F.softplus(-d(g(x))).mean()
        og.zero_grad(); lg.backward(); og.step()
