"""Differences of two values that are cut: advantages, weights of an interpolation; and both sides of a codebook."""
import torch
from torch import nn


class Codes(nn.Module):
    def __init__(self, count, size, swapped=True):
        super().__init__()
        self.table = nn.Embedding(count, size)
        self.swapped = swapped

    def forward(self, z):
        nearest = torch.cdist(z, self.table.weight).argmin(-1)
        q = self.table(nearest).view(z.shape)
        if self.swapped:
            loss = ((q.detach() - z) ** 2).mean() + 0.25 * ((q - z.detach()) ** 2).mean()
        else:
            loss = 0.25 * ((q.detach() - z) ** 2).mean() + ((q - z.detach()) ** 2).mean()
        return z + (q - z).detach(), loss


def between(points, low):
    share = points.clone().detach() - low.clone().detach()
    return share.clamp(0, 1)


def advantages(critic, states, returns):
    values = critic(states)
    return (returns.detach() - values.detach()), values


def train(actor, critic, batches):
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-4)
    for states, actions, returns in batches:
        advantage, values = advantages(critic, states, returns)
        chosen = actor(states).log_softmax(-1).gather(1, actions)
        loss = -(chosen * advantage).mean() + (values - returns).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
