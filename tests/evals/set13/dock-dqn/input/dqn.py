import copy, json, sys
import numpy as np
import torch
from torch import nn
from dock_env import DockEnv
from memory import Memory

c = json.load(open(sys.argv[1] if len(sys.argv) > 1 else "config.json"))
torch.manual_seed(c["seed"]); torch.set_num_threads(1)
rng = np.random.default_rng(c["seed"])
env = DockEnv(c["seed"])
q = nn.Sequential(nn.Linear(env.obs_dim, c["hidden"]), nn.ReLU(), nn.Linear(c["hidden"], c["hidden"]), nn.ReLU(),
                  nn.Linear(c["hidden"], env.n_actions))
target = copy.deepcopy(q).requires_grad_(False)
opt = torch.optim.Adam(q.parameters(), c["lr"])
mem = Memory(c["buffer"], env.obs_dim, c["seed"])
scale = torch.tensor([1.0, 10.0])
updates = 0


def act(s, eps):
    if rng.random() < eps:
        return int(rng.integers(env.n_actions))
    with torch.no_grad():
        return int(q(torch.from_numpy(s) * scale).argmax())


def learn():
    global updates
    s, a, r, s2, d = mem.sample(c["batch"])
    with torch.no_grad():
        best = q(s2 * scale).argmax(1, keepdim=True)
        y = r + c["gamma"] * (1 - d) * target(s2 * scale).gather(1, best)[:, 0]
    loss = nn.functional.smooth_l1_loss(q(s * scale).gather(1, a[:, None])[:, 0], y)
    opt.zero_grad(); loss.backward()
    nn.utils.clip_grad_norm_(q.parameters(), 10.0)
    opt.step()
    updates += 1
    if updates % c["target_sync"] == 0:
        target.load_state_dict(q.state_dict())
    return loss.item()


hist, docks, losses = [], [], []
for ep in range(1, c["episodes"] + 1):
    eps = max(c["eps_end"], c["eps_start"] + (c["eps_end"] - c["eps_start"]) * ep / c["eps_episodes"])
    s, ret, docked = env.reset(), 0.0, 0
    while True:
        a = act(s, eps)
        s2, r, done, cut = env.step(a)
        mem.add(s, a, r, s2, float(done))
        s = s2
        ret += r
        docked |= r > 0.5
        if mem.n >= c["warmup"]:
            losses.append(learn())
        if done or cut:
            break
    hist.append(ret); docks.append(docked)
    if ep % 20 == 0:
        print(f"ep {ep:4d} eps {eps:.2f} return {np.mean(hist[-20:]):+.3f} docked {np.mean(docks[-20:]):.2f} td-loss {np.mean(losses[-500:]):.5f} memory {mem.n}", flush=True)
