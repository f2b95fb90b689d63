"""Linear probe: how much species information is in the pretrained encoder?

The encoder is not trained here. Statistics of its BatchNorm layers stay as pretrained too.
"""
import logging
import sys

import torch
from torch import nn

from calls import SPECIES, clips
from encoder import CallEncoder

logging.basicConfig(stream=sys.stdout, format="%(levelname).1s %(asctime)s %(filename)s:%(lineno)d] %(message)s",
                    level=logging.INFO, datefmt="%m%d %H:%M:%S")
log = logging.getLogger("probe")


class Probe(nn.Module):
    def __init__(self, encoder, n_classes):
        super().__init__()
        self.encoder = encoder.requires_grad_(False)
        self.norm = nn.BatchNorm1d(64, affine=False)
        self.head = nn.Linear(64, n_classes)

    def train(self, mode=True):
        super().train(mode)
        self.encoder.eval()
        return self

    def forward(self, x):
        with torch.no_grad():
            z = self.encoder(x)
        return self.head(self.norm(z))


def group_norm(module):
    grads = [p.grad.norm() for p in module.parameters() if p.grad is not None]
    return float(torch.stack(grads).norm()) if grads else 0.0


def main():
    torch.manual_seed(4)
    encoder = CallEncoder()
    log.info("encoder.pt -> %s", encoder.load_state_dict(torch.load("encoder.pt")))
    probe = Probe(encoder, len(SPECIES))
    before = {k: v.clone() for k, v in encoder.state_dict().items()}
    trainable = [p for p in probe.parameters() if p.requires_grad]
    log.info("parameters: total %d, trainable %d", sum(p.numel() for p in probe.parameters()),
             sum(p.numel() for p in trainable))
    opt = torch.optim.AdamW(trainable, lr=1e-2, weight_decay=1e-2)
    x, y = clips(600, 60)
    xv, yv = clips(300, 61)
    for epoch in range(1, 16):
        probe.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(50):
            loss = nn.functional.cross_entropy(probe(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        probe.eval()
        with torch.no_grad():
            acc = (probe(xv).argmax(1) == yv).float().mean()
        log.info("epoch %d loss %.4f valid_acc %.3f grad[encoder] %.4f grad[head] %.4f", epoch, total / len(x), acc,
                 group_norm(probe.encoder), group_norm(probe.head))
    same = all(torch.equal(v, before[k]) for k, v in encoder.state_dict().items())
    log.info("encoder unchanged: %s", same)


if __name__ == "__main__":
    main()
