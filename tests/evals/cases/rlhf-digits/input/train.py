import argparse
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

from ppo_lite import clipped_objective, gather_logprobs, reward_to_go, rollout, shaped_rewards

VOCAB, BOS, LENGTH = 11, 10, 10


class TinyLM(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, VOCAB - 1)

    def forward(self, ids):
        return self.head(self.gru(self.emb(ids))[0])


def corpus(n):
    """Counting sequences with random step 1..3, sometimes a random digit."""
    start, step = torch.randint(0, 10, (n, 1)), torch.randint(1, 4, (n, 1))
    seq = (start + step * torch.arange(LENGTH)) % 10
    noise = torch.rand(n, LENGTH) < 0.1
    seq = torch.where(noise, torch.randint(0, 10, seq.shape), seq)
    return torch.cat([torch.full((n, 1), BOS), seq], 1)


def preference(seq):
    """Raters like even digits a little, and dislike nothing else."""
    return (seq[:, 1:] % 2 == 0).float().mean(1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--sft-steps", type=int, default=250)
    ap.add_argument("--updates", type=int, default=80)
    ap.add_argument("--rollouts", type=int, default=96)
    ap.add_argument("--kl-coef", type=float, default=0.15)
    ap.add_argument("--lr", type=float, default=3e-3)
    a = ap.parse_args()
    torch.manual_seed(0)
    actor = TinyLM()
    sft = torch.optim.Adam(actor.parameters(), 1e-2)
    for k in range(a.sft_steps):
        ids = corpus(64)
        nll = -gather_logprobs(actor, ids).mean()
        sft.zero_grad()
        nll.backward()
        sft.step()
    print(f"sft done, nll {nll.item():.3f}")
    ref = copy.deepcopy(actor).eval().requires_grad_(False)
    opt = torch.optim.Adam(actor.parameters(), a.lr)
    for u in range(1, a.updates + 1):
        seq = rollout(actor, a.rollouts, LENGTH, BOS)
        score = preference(seq)
        with torch.no_grad():
            old, ref_logp = gather_logprobs(actor, seq), gather_logprobs(ref, seq)
            rewards, kl = shaped_rewards(score, old, ref_logp, a.kl_coef)
            ret = reward_to_go(rewards)
            adv = (ret - ret.mean(0)) / (ret.std() + 1e-6)
        for _ in range(2):
            loss = clipped_objective(gather_logprobs(actor, seq), old, adv)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if u % 5 == 0:
            with torch.no_grad():
                p = F.softmax(actor(seq[:, :-1]), -1)
                ent = -(p * p.clamp_min(1e-12).log()).sum(-1).mean().item()
            print(f"update {u:3d} | objective/kl {kl.sum(1).mean().item():8.3f} | objective/entropy {ent:.3f} | "
                  f"score {score.mean().item():.3f} | shaped {rewards.sum(1).mean().item():7.3f} | "
                  f"ref nll {-ref_logp.mean().item():7.3f} | unique {len(set(map(tuple, seq.tolist())))}/{a.rollouts}")


if __name__ == "__main__":
    main()
