import torch
from torch import nn
from torch.distributions import Normal


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi = nn.Linear(8, 4)
        self.q = nn.Linear(10, 1)

    def dist(self, s):
        mu, ls = self.pi(s).chunk(2, -1)
        return Normal(mu, ls.exp())


def critic_update(agent, opt, loader):
    for s, r, s2 in loader:
        a = agent.dist(s).sample()
        q = agent.q(torch.cat([s, a], -1))
        loss = ((q - r) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


def main(loader):
    agent = Agent()
    opt = torch.optim.Adam(agent.q.parameters())
    critic_update(agent, opt, loader)


def policy(loader):
    net, value = nn.Linear(8, 2), nn.Linear(2, 1)
    opt = torch.optim.Adam([*net.parameters(), *value.parameters()])
    for s, r in loader:
        d = Normal(net(s), 1.0)
        a = d.sample()
        loss = -(d.log_prob(a).sum(-1) * r).mean() + (value(a) - r).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
