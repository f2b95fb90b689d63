"""Group-relative policy optimisation of a small policy with a frozen reference."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

PROMPTS, GROUP, LENGTH, VOCABULARY = 16, 8, 12, 64
CLIP, BETA = 0.2, 0.02


class Policy(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])


@torch.no_grad()
def sample(policy, prompts):
    tokens = prompts
    for _ in range(LENGTH):
        logits = policy(tokens)[:, -1]
        tokens = torch.cat([tokens, torch.multinomial(F.softmax(logits, dim=-1), 1)], dim=1)
    return tokens


def log_probabilities(policy, tokens, prompt_length):
    logits = policy(tokens[:, :-1])[:, prompt_length - 1 :]
    chosen = tokens[:, prompt_length:]
    return F.log_softmax(logits, dim=-1).gather(-1, chosen.unsqueeze(-1)).squeeze(-1)


def advantages_of(rewards):
    groups = rewards.view(-1, GROUP)
    centred = groups - groups.mean(dim=1, keepdim=True)
    return (centred / (groups.std(dim=1, keepdim=True) + 1e-4)).view(-1)


def main(steps=200):
    torch.manual_seed(0)
    policy = Policy()
    reference = copy.deepcopy(policy).requires_grad_(False)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-4)
    for step in range(steps):
        prompts = torch.randint(0, VOCABULARY, (PROMPTS, 4)).repeat_interleave(GROUP, dim=0)
        tokens = sample(policy, prompts)
        rewards = (tokens[:, 4:] % 2 == 0).float().mean(dim=1)
        advantages = advantages_of(rewards).unsqueeze(1)
        with torch.no_grad():
            old_logp = log_probabilities(policy, tokens, 4)
            ref_logp = log_probabilities(reference, tokens, 4)
        for _ in range(2):
            logp = log_probabilities(policy, tokens, 4)
            ratio = torch.exp(logp - old_logp)
            clipped = torch.clamp(ratio, 1 - CLIP, 1 + CLIP)
            surrogate = torch.min(ratio * advantages, clipped * advantages)
            kl = torch.exp(ref_logp - logp) - (ref_logp - logp) - 1
            loss = -(surrogate - BETA * kl).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            optimizer.step()
        if step % 10 == 0:
            print(step, loss.item(), rewards.mean().item())


if __name__ == "__main__":
    main()
