"""Hail damage regression in fp16 with our own loss scaler (DeepSpeed-like messages)."""
import argparse
import logging
import sys
import torch
import torch.nn as nn

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="[%(asctime)s] [%(levelname)s] [%(filename)s:%(lineno)d:%(funcName)s] %(message)s")
log = logging.getLogger()


class DynamicScaler:
    def __init__(self, power=16, min_scale=1.0, window=200):
        self.scale, self.min, self.window, self.good = 2.0 ** power, min_scale, window, 0

    def overflow(self, params):
        return any(not torch.isfinite(p.grad).all() for p in params if p.grad is not None)

    def update(self, bad):
        if not bad:
            self.good += 1
            if self.good % self.window == 0:
                self.scale *= 2
            return
        self.good = 0
        if self.scale <= self.min:
            raise Exception("Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.")
        log.info("[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: %d, reducing to %d", self.scale, self.scale / 2)
        self.scale /= 2


def claims(n, g):
    """hail size mm, roof area m2, insured sum, building year, distance m, gust km/h"""
    x = torch.stack([10 + 40 * torch.rand(n, generator=g), 60 + 400 * torch.rand(n, generator=g),
                     5e4 + 6e5 * torch.rand(n, generator=g), 1900 + 120 * torch.rand(n, generator=g),
                     2e4 * torch.rand(n, generator=g), 40 + 90 * torch.rand(n, generator=g)], 1)
    y = 0.02 * (x[:, 0] - 10) + 0.001 * x[:, 1] - 2e-5 * x[:, 4] + 0.004 * x[:, 5]
    return x, y


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=300)
    ap.add_argument("--lr", type=float, default=1e-2)
    args = ap.parse_args()
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    net = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 1), nn.Flatten(0)).half()
    master = [p.detach().float().clone() for p in net.parameters()]
    opt = torch.optim.SGD(master, lr=args.lr, momentum=0.9)
    scaler = DynamicScaler()
    for step in range(1, args.steps + 1):
        x, y = claims(64, g)
        loss = (net(x.half()).float() - y).square().mean()
        net.zero_grad()
        (loss * scaler.scale).backward()
        bad = scaler.overflow(net.parameters())
        if not bad:
            for m, p in zip(master, net.parameters()):
                m.grad = p.grad.float() / scaler.scale
            nn.utils.clip_grad_norm_(master, 1.0)
            opt.step()
            for m, p in zip(master, net.parameters()):
                p.data.copy_(m)
        scaler.update(bad)
        if step % 10 == 0:
            log.info("step=%d, skipped=%s, lr=%g, loss=%.5f, loss_scale=%d", step, bad, args.lr, loss.item(), scaler.scale)


if __name__ == "__main__":
    main()
