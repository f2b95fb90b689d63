import collections
import copy
import json
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

from env import ShelfWalk

Transition = collections.namedtuple("Transition", "obs h action reward next_obs next_h")


def rss_mb():
    with open("/proc/self/status") as f:
        for line in f:
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
    return 0.0


class RecurrentQ(nn.Module):
    def __init__(self, n_obs, n_act, hidden):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(n_obs, hidden), nn.ReLU())
        self.core = nn.GRUCell(hidden, hidden)
        self.adv = nn.Linear(hidden, n_act)
        self.val = nn.Linear(hidden, 1)

    def forward(self, obs, h):
        h = self.core(self.enc(obs), h)
        a = self.adv(h)
        return self.val(h) + a - a.mean(-1, keepdim=True), h


class Agent:
    def __init__(self, cfg):
        self.cfg = cfg
        self.q = RecurrentQ(ShelfWalk.n_obs, ShelfWalk.n_act, cfg["hidden"])
        self.target = copy.deepcopy(self.q).requires_grad_(False)
        self.opt = torch.optim.Adam(self.q.parameters(), lr=cfg["lr"])
        self.memory = collections.deque(maxlen=cfg["buffer"])

    def act(self, obs, h, eps):
        q, h = self.q(obs, h)
        greedy = q.argmax(-1)
        explore = torch.rand(len(obs)) < eps
        action = torch.where(explore, torch.randint(0, ShelfWalk.n_act, (len(obs),)), greedy)
        return action, h

    def learn(self):
        rows = random.sample(self.memory, self.cfg["batch"])
        obs = torch.cat([r.obs for r in rows])
        h = torch.cat([r.h for r in rows]).detach()
        action = torch.cat([r.action for r in rows])
        reward = torch.cat([r.reward for r in rows])
        next_obs = torch.cat([r.next_obs for r in rows])
        next_h = torch.cat([r.next_h for r in rows]).detach()
        with torch.no_grad():
            best = self.q(next_obs, next_h)[0].argmax(-1, keepdim=True)
            boot = self.target(next_obs, next_h)[0].gather(1, best).squeeze(1)
            goal = reward + self.cfg["gamma"] * boot
        chosen = self.q(obs, h)[0].gather(1, action[:, None]).squeeze(1)
        td = F.smooth_l1_loss(chosen, goal)
        self.opt.zero_grad()
        td.backward()
        nn.utils.clip_grad_norm_(self.q.parameters(), 5.0)
        self.opt.step()
        return td.item()


def main():
    cfg = json.load(open("config.json"))
    random.seed(4)
    torch.manual_seed(4)
    env, agent = ShelfWalk(cfg["envs"]), Agent(cfg)
    obs, h = env.observe(), torch.zeros(cfg["envs"], cfg["hidden"])
    smoothed, td = 0.0, float("nan")
    for step in range(cfg["steps"] + 1):
        eps = max(0.05, 1.0 - step / 800)
        action, next_h = agent.act(obs, h, eps)
        next_obs, reward = env.step(action)
        agent.memory.append(Transition(obs, h, action, reward, next_obs, next_h))
        obs, h = next_obs, next_h
        smoothed += 0.02 * (reward.mean().item() - smoothed)
        if step > 100 and step % cfg["learn_every"] == 0:
            td = agent.learn()
        if step % cfg["target_every"] == 0:
            agent.target.load_state_dict(agent.q.state_dict())
        if step % 100 == 0:
            mem = rss_mb()
            print(f"step {step:5d} eps {eps:.2f} reward {smoothed:+.3f} td {td:.4f} buffer {len(agent.memory)}/{cfg['buffer']} rss {mem:.0f}M", flush=True)
            if mem > cfg["rss_budget_mb"]:
                raise MemoryError(f"resident memory {mem:.0f}M above the job limit of {cfg['rss_budget_mb']}M (slurm would kill us now)")
    print("finished")


if __name__ == "__main__":
    main()
