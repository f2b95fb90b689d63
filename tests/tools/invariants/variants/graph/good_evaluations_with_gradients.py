"""Passes in eval mode whose gradients are wanted, and evaluations without any."""
import torch
import torch.nn.functional as F
from torch import nn


def frozen_statistics(loader):
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8, 2))
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    for crops, y in loader:
        net.eval()
        losses = []
        for crop in crops:
            losses.append(F.cross_entropy(net(crop), y))
        opt.zero_grad()
        sum(losses).backward()
        opt.step()


def saliency(net, loader):
    net.eval()
    for x, y in loader:
        x = x.clone().requires_grad_()
        (g,) = torch.autograd.grad(net(x).max(), x)
        yield g.abs()


class Judge:
    def __init__(self):
        self.net = nn.Linear(4, 2)

    @torch.inference_mode()
    def score(self, loader):
        self.net.eval()
        return [self.net(x) for x, _ in loader]


def perceptual(loader):
    features, net = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(4, 4)
    features.eval()
    features.requires_grad_(False)
    opt = torch.optim.Adam(net.parameters())
    for x in loader:
        loss = sum(F.mse_loss(layer(net(x)), layer(x)) for layer in features)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return Judge().score(loader)


def rollouts_in_eval_mode(env, policy):
    opt = torch.optim.Adam(policy.parameters())
    for _ in range(100):
        policy.eval()
        log_probs, state = [], env.reset()
        for _ in range(200):
            choice = torch.distributions.Categorical(logits=policy(state))
            action = choice.sample()
            log_probs.append(choice.log_prob(action))
            state = env.step(action)
        loss = -torch.stack(log_probs).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
