import csv

import torch

from agent import Policy, returns_of
from ferry import LIMIT, POSITIONS, Ferries


def rollout(env, policy):
    obs, logp, entropy, rewards, alive = env.reset(), [], [], [], []
    done = env.done.clone()
    for _ in range(LIMIT):
        dist = policy(obs)
        action = dist.sample()
        logp.append(dist.log_prob(action))
        entropy.append(dist.entropy())
        alive.append(~done)
        obs, r, done = env.step(action)
        rewards.append(r)
        if done.all():
            break
    return torch.stack(logp), torch.stack(entropy), torch.stack(rewards), torch.stack(alive)


def main(updates=150, gamma=0.98, beta=0.01):
    torch.manual_seed(6)
    env = Ferries(64, torch.Generator().manual_seed(6))
    policy = Policy(POSITIONS)
    opt = torch.optim.Adam(policy.parameters(), lr=1e-2)
    with open("progress.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["update", "mean_return", "right_pier", "length", "entropy"])
        for u in range(updates):
            logp, entropy, rewards, alive = rollout(env, policy)
            ret = returns_of(rewards, gamma)
            adv = ret - ret[alive].mean()
            adv = adv / (ret[alive].std() + 1e-6)
            loss = -(logp * adv.detach())[alive].mean() - beta * entropy[alive].mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            row = [u, rewards.sum(0).mean().item(), (env.pos == POSITIONS - 1).float().mean().item(),
                   alive.float().sum(0).mean().item(), entropy[alive].mean().item()]
            w.writerow([round(v, 4) for v in row])
            if u % 10 == 9:
                print("update {:3d} | return {:+.3f} | right pier {:.2f} | length {:5.1f} | entropy {:.3f}".format(*row))


if __name__ == "__main__":
    main()
