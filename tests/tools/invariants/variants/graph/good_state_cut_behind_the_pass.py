"""State cut behind the pass."""
import torch
from torch import nn


def train(seqs, k=20):
    gru, head = (nn.GRU(4, 8), nn.Linear(8, 1))
    opt = torch.optim.Adam([*gru.parameters(), *head.parameters()])
    state = None
    for x, y in seqs:
        opt.zero_grad()
        out, state = gru(x, state)
        state = state.detach()
        loss = nn.functional.mse_loss(head(out), y)
        loss.backward()
        opt.step()
