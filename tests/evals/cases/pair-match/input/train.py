import copy
import logging

import torch
import torch.nn as nn
import torch.nn.functional as F

logging.basicConfig(level=logging.INFO, format="[%(asctime)s][%(module)s] %(message)s", datefmt="%d.%m.%Y %H:%M:%S")
logger = logging.getLogger(__name__)

SETTINGS = {"dim": 16, "proj": 24, "lr": 1e-3, "n_iter": 500, "margin": 0.5, "ema": 0.99, "batch": 64}


class Tower(nn.Module):
    """Embeds one product record."""

    def __init__(self, dim, proj):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, proj))

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


class Catalogue:
    """Two noisy records per product; the second shop uses another attribute basis."""

    def __init__(self, dim, seed=0):
        self.g = torch.Generator().manual_seed(seed)
        self.rot = torch.linalg.qr(torch.randn(dim, dim, generator=self.g))[0]
        self.dim = dim

    def pairs(self, n):
        p = torch.randn(n, self.dim, generator=self.g)
        noise = lambda: 0.25 * torch.randn(n, self.dim, generator=self.g)
        return p + noise(), p @ self.rot + noise()


class Matcher:
    def __init__(self, cfg):
        self.cfg = cfg
        self.left, self.right = Tower(cfg["dim"], cfg["proj"]), Tower(cfg["dim"], cfg["proj"])
        params = list(self.left.parameters()) + list(self.right.parameters())
        self.opt = torch.optim.Adam(params, lr=cfg["lr"])

    def reset_weights(self):
        """Orthogonal start, as in the paper."""
        fresh = [copy.deepcopy(self.left), copy.deepcopy(self.right)]
        for tower in fresh:
            for m in tower.modules():
                if isinstance(m, nn.Linear):
                    nn.init.orthogonal_(m.weight, 1.2)
                    nn.init.zeros_(m.bias)
        self.left, self.right = fresh
        return self

    def loss(self, a, b):
        s = self.left(a) @ self.right(b).T
        pos = s.diagonal()
        neg = (s - 2 * torch.eye(len(s))).max(1).values
        return F.relu(self.cfg["margin"] + neg - pos).mean()

    @torch.no_grad()
    def recall(self, a, b):
        return ((self.left(a) @ self.right(b).T).argmax(1) == torch.arange(len(a))).float().mean().item()


def main():
    torch.manual_seed(0)
    data = Catalogue(SETTINGS["dim"])
    matcher = Matcher(SETTINGS).reset_weights()
    probe = data.pairs(200)
    for it in range(1, SETTINGS["n_iter"] + 1):
        a, b = data.pairs(SETTINGS["batch"])
        hinge = matcher.loss(a, b)
        matcher.opt.zero_grad()
        hinge.backward()
        matcher.opt.step()
        if it % 25 == 0:
            logger.info("it=%d hinge=%.4f recall@1=%.3f", it, hinge.item(), matcher.recall(*probe))


if __name__ == "__main__":
    main()
