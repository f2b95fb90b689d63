import argparse
import logging
import sys

import torch

from siamese import Siamese
from tones import ToneBank


def run(a):
    log = logging.getLogger("pretrain")
    torch.manual_seed(a.seed)
    bank = ToneBank(seed=a.seed)
    net = Siamese(bank.n // 2 + 1)
    opt = torch.optim.SGD(net.parameters(), lr=a.lr, momentum=0.9, weight_decay=5e-4)
    for step in range(1, a.steps + 1):
        x, _ = bank.batch(a.batch)
        loss, spread = net(bank.view(x), bank.view(x))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step == 1 or step % 50 == 0:
            log.info("step %4d  similarity loss %.4f  spread %.4f", step, loss.item(), spread)
    x, y = bank.batch(900)
    with torch.no_grad():
        z = net.projector(net.backbone(bank.view(x)))
    z = torch.nn.functional.normalize(z, dim=1)
    near = (z[600:] @ z[:600].T).topk(5, dim=1).indices
    acc = (y[:600][near].mode(dim=1).values == y[600:]).float().mean()
    log.info("5-nn accuracy on %d tone sources: %.3f", bank.k, acc)


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=500)
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--seed", type=int, default=4)
    run(p.parse_args())
