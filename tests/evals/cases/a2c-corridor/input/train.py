"""A2C on a key-and-door grid: 16 parallel copies, pick up the key, then reach the door."""
import torch
import torch.nn as nn
from torch.distributions import Categorical

N, SIZE, LIMIT = 16, 4, 30
MOVES = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])


class KeyDoor:
    def __init__(self, gen):
        self.gen = gen
        self.pos = torch.zeros(N, 2, dtype=torch.long)
        self.key = torch.zeros(N, dtype=torch.bool)
        self.t = torch.zeros(N, dtype=torch.long)
        self._reset(torch.ones(N, dtype=torch.bool))

    def _reset(self, m):
        k = int(m.sum())
        self.pos[m] = torch.randint(0, SIZE, (k, 2), generator=self.gen)
        self.key[m] = False
        self.t[m] = 0

    def obs(self):
        cell = torch.nn.functional.one_hot(self.pos[:, 0] * SIZE + self.pos[:, 1], SIZE * SIZE).float()
        return torch.cat([cell * (~self.key).float()[:, None], cell * self.key.float()[:, None]], 1)

    def step(self, a):
        self.pos = (self.pos + MOVES[a]).clamp(0, SIZE - 1)
        self.t += 1
        on_key = (self.pos == torch.tensor([0, SIZE - 1])).all(1) & ~self.key
        self.key |= on_key
        on_door = (self.pos == torch.tensor([SIZE - 1, 0])).all(1) & self.key
        r = 0.5 * on_key.float() + 1.0 * on_door.float() - 0.01
        done = on_door | (self.t >= LIMIT)
        self._reset(done)
        return self.obs(), r, done, on_door


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2 * SIZE * SIZE, 64), nn.Tanh())
        self.pi, self.v = nn.Linear(64, 4), nn.Linear(64, 1)

    def forward(self, o):
        h = self.body(o)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


def returns(rew, done, last_v, gamma):
    out, R = [], last_v
    for r, d in zip(reversed(rew), reversed(done)):
        R = r + gamma * R * (~d).float()
        out.append(R)
    return torch.stack(out[::-1])


def main(updates=400, rollout=12, gamma=0.95, vf_coef=0.5, ent_coef=0.1, lr=3e-3):
    torch.manual_seed(4)
    env, net = KeyDoor(torch.Generator().manual_seed(4)), ActorCritic()
    opt = torch.optim.Adam(net.parameters(), lr=lr)
    obs = env.obs()
    ep_r, fin, wins = torch.zeros(N), [], []
    print("-" * 70)
    print("| update | frames | ep_rew_mean | success | entropy | value_loss | pg_loss |")
    print("-" * 70)
    for u in range(1, updates + 1):
        lp, vals, ents, rews, dones = [], [], [], [], []
        for _ in range(rollout):
            dist, v = net(obs)
            a = dist.sample()
            lp.append(dist.log_prob(a)), vals.append(v), ents.append(dist.entropy())
            obs, r, d, win = env.step(a)
            rews.append(r), dones.append(d)
            ep_r += r
            if d.any():
                fin += ep_r[d].tolist()
                wins += win[d].float().tolist()
                ep_r[d] = 0
        with torch.no_grad():
            last_v = net(obs)[1]
        R, V = returns(rews, dones, last_v, gamma), torch.stack(vals)
        adv = (R - V).detach()
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        pg = -(torch.stack(lp) * adv).mean()
        vl = (R - V).pow(2).mean()
        ent = torch.stack(ents).mean()
        loss = pg + vf_coef * vl + ent_coef * ent
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        opt.step()
        if u % 50 == 0:
            f, w = fin[-200:], wins[-200:]
            print(f"| {u:6d} | {u * rollout * N:6d} | {sum(f) / max(len(f), 1):11.3f} | {sum(w) / max(len(w), 1):7.2f} "
                  f"| {ent.item():7.4f} | {vl.item():10.5f} | {pg.item():7.4f} |")


if __name__ == "__main__":
    main()
