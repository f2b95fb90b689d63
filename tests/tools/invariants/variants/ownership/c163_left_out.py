"""Modules by which the loss is computed and that no optimizer holds, each in a training of its own."""
import itertools

import torch
import torch.nn.functional as F
from torch import nn


class Encoder(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(32, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, x):
        return self.layers(x)


def step(loss, opt):
    opt.zero_grad()
    loss.backward()
    opt.step()


def head_alone(loader):
    body, head = Encoder(), nn.Linear(16, 3)
    opt = torch.optim.SGD(body.parameters(), lr=0.1)
    for x, y in loader:
        features = body(x)
        logits = head(features)  # FAULT C163
        step(F.cross_entropy(logits, y), opt)


class Both:
    def __init__(self):
        self.image, self.text = Encoder(), Encoder()
        self.project = nn.Linear(16, 8, bias=False)
        self.opt = torch.optim.AdamW(itertools.chain(self.image.parameters(), self.text.parameters()), lr=1e-4)

    def train(self, loader):
        for image, text in loader:
            one = self.project(self.image(image))  # FAULT C163
            other = self.project(self.text(text))
            step(F.mse_loss(one, other), self.opt)


def contrast(loader):
    Both().train(loader)


def embedding(loader):
    table, mixer = nn.Embedding(100, 16), nn.GRU(16, 16, batch_first=True)
    out = nn.Linear(16, 100)
    opt = torch.optim.Adam(list(mixer.parameters()) + list(out.parameters()))
    for ids in loader:
        seen = table(ids[:, :-1])  # FAULT C163
        hidden, _ = mixer(seen)
        step(F.cross_entropy(out(hidden).transpose(1, 2), ids[:, 1:]), opt)


def two_optimizers(loader):
    encoder, decoder, scale = Encoder(), nn.Linear(16, 32), nn.Linear(32, 32)
    first = torch.optim.Adam(encoder.parameters())
    second = torch.optim.Adam([{"params": decoder.parameters(), "lr": 1e-4}])
    for x in loader:
        loss = F.mse_loss(scale(decoder(encoder(x))), x)  # FAULT C163
        first.zero_grad()
        second.zero_grad()
        loss.backward()
        first.step()
        second.step()


def build():
    encoder, decoder = Encoder(), nn.Linear(16, 32)
    return encoder, decoder, torch.optim.Adam(decoder.parameters())


def by_a_helper(loader):
    encoder, decoder, opt = build()
    for x in loader:
        code = encoder(x)  # FAULT C163
        step((decoder(code) - x).square().mean(), opt)


def auxiliary(loader):
    net, predictor = Encoder(), nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        h = net(x)
        main = h.pow(2).mean()
        extra = F.mse_loss(predictor(h).squeeze(-1), y)  # FAULT C163
        step(main + 0.1 * extra, opt)


def norm_of_features(loader):
    conv, head = nn.Conv2d(3, 8, 3), nn.Linear(8, 2)
    opt = torch.optim.Adam(head.parameters())
    for x, y in loader:
        features = torch.relu(conv(x)).mean((2, 3))  # FAULT C163
        step(F.cross_entropy(head(features), y), opt)


def weighting(loader):
    net, weigh = Encoder(), nn.Linear(32, 1)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for x, y in loader:
        weights = weigh(x).sigmoid().squeeze(1)  # FAULT C163
        step((weights * F.cross_entropy(net(x), y, reduction="none")).mean(), opt)
