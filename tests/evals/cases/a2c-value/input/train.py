"""Batched A2C on a delivery chain: walk right to hand over parcels, rest when tired."""
import torch
import torch.nn as nn

torch.manual_seed(4)
ENVS, T, UPDATES, GAMMA = 48, 12, 300, 0.95


class Chain:
    def __init__(self, n):
        self.n = n
        self.x, self.tired = torch.randint(0, 9, (n,)), torch.zeros(n)

    def observe(self):
        return torch.cat([nn.functional.one_hot(self.x, 9).float(), self.tired[:, None] / 5], 1)

    def step(self, a):
        left, right, rest = a == 0, a == 1, a == 2
        able = (self.tired < 5) & (torch.rand(self.n) < 0.7)
        self.x = (self.x - left.long() + (right & able).long()).clamp(min=0)
        self.tired = torch.where(rest, torch.zeros(self.n), (self.tired + (torch.rand(self.n) < 0.5)).clamp(max=5))
        delivered = self.x == 9
        reward = 10.0 * delivered.float() - 0.1
        self.x = torch.where(delivered, torch.zeros_like(self.x), self.x)
        return reward


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 48), nn.Tanh())
        self.pi, self.v = nn.Linear(48, 3), nn.Linear(48, 1)

    def forward(self, o):
        h = self.body(o)
        return torch.distributions.Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


env, agent, window = Chain(ENVS), Agent(), []
rms = torch.optim.RMSprop(agent.parameters(), lr=4e-4, alpha=0.99, eps=1e-5)
for u in range(1, UPDATES + 1):
    logps, values, rewards, ents = [], [], [], []
    for _ in range(T):
        dist, v = agent(env.observe())
        a = dist.sample()
        logps.append(dist.log_prob(a))
        values.append(v)
        ents.append(dist.entropy())
        rewards.append(env.step(a))
    with torch.no_grad():
        R = agent(env.observe())[1]
    returns = []
    for r in reversed(rewards):
        R = r + GAMMA * R
        returns.insert(0, R)
    returns, values, logps = torch.stack(returns), torch.stack(values), torch.stack(logps)
    adv = (returns - values).detach()
    pg = -(logps * adv).mean()
    vl = (returns - values).pow(2).mean()
    ent = torch.stack(ents).mean()
    total = pg + 0.5 * vl - 0.03 * ent
    rms.zero_grad()
    total.backward()
    nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
    rms.step()
    window.append([torch.stack(rewards).mean(), pg.item(), vl.item(), total.item(), values.mean().item(), ent.item()])
    if u % 20 == 0:
        rew, p, v, tot, val, e = torch.tensor(window).mean(0).tolist()
        print(f"| {u:4d} | reward/step {rew:7.3f} | policy_loss {p:8.4f} | value_loss {v:8.4f} | total {tot:8.4f} | value {val:7.3f} | entropy {e:.3f} |")
        window.clear()
