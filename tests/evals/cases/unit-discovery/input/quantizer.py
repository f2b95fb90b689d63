import torch
import torch.nn as nn
import torch.nn.functional as F


class GumbelUnits(nn.Module):
    """Product quantizer with straight-through Gumbel softmax, G groups of V entries."""

    def __init__(self, dim, groups=2, entries=24, out_dim=32, tau=(2.0, 0.5, 0.995)):
        super().__init__()
        self.groups, self.entries = groups, entries
        self.score = nn.Linear(dim, groups * entries)
        self.vectors = nn.Parameter(torch.rand(groups, entries, out_dim // groups) - 0.5)
        nn.init.normal_(self.score.weight, std=0.3)
        nn.init.zeros_(self.score.bias)
        self.tau_max, self.tau_min, self.tau_decay = tau
        self.tau = self.tau_max

    def anneal(self, step):
        self.tau = max(self.tau_max * self.tau_decay ** step, self.tau_min)

    def forward(self, h):
        logits = self.score(h).view(-1, self.groups, self.entries)
        soft = logits.softmax(-1).mean(0)
        prob_ppl = torch.exp(-(soft * (soft + 1e-7).log()).sum(-1)).sum()
        hard = F.one_hot(logits.argmax(-1), self.entries).float().mean(0)
        code_ppl = torch.exp(-(hard * (hard + 1e-7).log()).sum(-1)).sum()
        w = F.gumbel_softmax(logits, self.tau, hard=True) if self.training else F.one_hot(logits.argmax(-1), self.entries).float()
        q = torch.einsum("ngv,gvd->ngd", w, self.vectors).flatten(1).view(*h.shape[:-1], -1)
        return {"q": q, "prob_perplexity": prob_ppl, "code_perplexity": code_ppl, "num_vars": self.groups * self.entries}
