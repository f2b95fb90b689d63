import torch
import torch.nn.functional as F


def gather_logprobs(policy, tokens):
    logp = F.log_softmax(policy(tokens[:, :-1]), -1)
    return logp.gather(-1, tokens[:, 1:].unsqueeze(-1)).squeeze(-1)


@torch.no_grad()
def rollout(policy, n, length, bos):
    seq = torch.full((n, 1), bos)
    for _ in range(length):
        seq = torch.cat([seq, torch.distributions.Categorical(logits=policy(seq)[:, -1]).sample()[:, None]], 1)
    return seq


def shaped_rewards(score, logp, ref_logp, kl_coef):
    """Per-token KL penalty, the sequence score is paid at the last token (as in InstructGPT)."""
    kl = ref_logp - logp
    rewards = -kl_coef * kl
    rewards[:, -1] += score
    return rewards, kl


def reward_to_go(rewards):
    return rewards.flip(1).cumsum(1).flip(1)


def clipped_objective(new, old, adv, eps=0.2):
    ratio = (new - old).exp()
    return -torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv).mean()
