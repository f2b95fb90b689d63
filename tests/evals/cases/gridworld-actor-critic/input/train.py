"""One-step advantage actor-critic on a small delivery grid."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE, HORIZON, GAMMA = 6, 30, 0.97
MOVES = [(0, 1), (0, -1), (1, 0), (-1, 0)]


class DeliveryGrid:
    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.courier = self.rng.integers(0, SIZE, 2)
        self.customer = self.rng.integers(0, SIZE, 2)
        self.t = 0
        return self.obs()

    def obs(self):
        return np.concatenate([self.courier, self.customer]).astype(np.float32) / SIZE

    def step(self, a):
        self.courier = np.clip(self.courier + MOVES[a], 0, SIZE - 1)
        self.t += 1
        arrived = bool((self.courier == self.customer).all())
        return self.obs(), (1.0 if arrived else -0.02), arrived or self.t >= HORIZON


class CourierNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.policy = nn.Linear(64, len(MOVES))
        self.value = nn.Linear(64, 1)

    def forward(self, obs):
        z = self.trunk(obs)
        return self.policy(z), self.value(z).squeeze(-1)


def rollout(env, net):
    obs, acts, rews = [], [], []
    o, done = env.reset(), False
    while not done:
        with torch.no_grad():
            logits, _ = net(torch.as_tensor(o))
        a = torch.distributions.Categorical(logits=logits).sample().item()
        obs.append(o)
        o, r, done = env.step(a)
        acts.append(a)
        rews.append(r)
    ret, out = 0.0, []
    for r in reversed(rews):
        ret = r + GAMMA * ret
        out.append(ret)
    return torch.as_tensor(np.stack(obs)), torch.tensor(acts), torch.tensor(out[::-1])


torch.manual_seed(1)
env, net = DeliveryGrid(np.random.default_rng(1)), CourierNet()
critic_opt = torch.optim.Adam([*net.trunk.parameters(), *net.value.parameters()], lr=1e-3)
actor_opt = torch.optim.Adam([*net.trunk.parameters(), *net.policy.parameters()], lr=5e-4)

print("episode  length  return")
for episode in range(200):
    obs, acts, returns = rollout(env, net)
    print(f"{episode:7d}  {len(acts):6d}  {returns[0]:+.3f}")
    logits, values = net(obs)
    advantage = (returns - values).detach()

    critic_loss = F.mse_loss(values, returns)
    critic_opt.zero_grad()
    critic_loss.backward(retain_graph=True)
    critic_opt.step()

    logp = F.log_softmax(logits, -1).gather(1, acts[:, None]).squeeze(1)
    actor_loss = -(logp * advantage).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
