"""Precipitation nowcasting head on top of a stored encoder."""
import argparse
import logging
import sys
import torch
from torch import nn

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
log = logging.getLogger("nowcast")


class Encoder(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem = nn.Conv2d(4, width, 3, padding=1)
        self.mid = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return torch.relu(self.mid(torch.relu(self.stem(x))))


class Nowcaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.head = nn.Conv2d(16, 1, 1)

    def forward(self, x):
        return self.head(self.encoder(x))


def radar(n, g):
    base = torch.rand(n, 1, 12, 12, generator=g)
    frames = torch.cat([torch.roll(base, s, -1) for s in range(4)], 1)
    return frames + 0.05 * torch.randn(frames.shape, generator=g), torch.roll(base, 4, -1)


def pretrain(path, steps=120):
    """First job: frame reconstruction, run on several cards with DataParallel."""
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    enc, dec = nn.DataParallel(Encoder()), nn.Conv2d(16, 4, 1)
    opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=3e-3)
    for s in range(steps):
        x, _ = radar(16, g)
        loss = (dec(enc(x)) - x).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if s % 40 == 0:
            log.info("pretrain step %d l1 %.4f", s, loss.item())
    torch.save({"encoder": enc.state_dict(), "step": steps}, path)


def finetune(path, steps):
    net = Nowcaster()
    blob = torch.load(path)
    log.info("loading encoder of step %d from %s", blob["step"], path)
    net.encoder.load_state_dict(blob["encoder"])
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    g = torch.Generator().manual_seed(1)
    for s in range(steps):
        x, y = radar(16, g)
        mae = (net(x) - y).abs().mean()
        opt.zero_grad()
        mae.backward()
        opt.step()
        if s % 20 == 0:
            log.info("finetune step %d mae %.4f", s, mae.item())
    log.info("finetune finished")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--encoder", default="encoder.pt")
    a = p.parse_args()
    pretrain(a.encoder)
    finetune(a.encoder, a.steps)
