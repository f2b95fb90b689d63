"""Accelerate run of a small rating model: gradient accumulation, tracker that is not reachable, chatty libraries."""
import logging
import time
import warnings
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s:%(name)s:%(message)s")
log = logging.getLogger("ratings")
warnings.simplefilter("always")


class Tracker:
    """Sends metrics to the team's server; optional."""

    def send(self, step, values):
        raise ConnectionError("HTTPConnectionPool(host='tracker.local', port=5000): Max retries exceeded with url: /api/metrics")


def legacy_normalise(x):
    warnings.warn("legacy_normalise is deprecated and will be removed in 3.0, use normalise()", FutureWarning, stacklevel=2)
    return (x - x.mean(0)) / (x.std(0) + 1e-6)


def table(n=2400):
    g = torch.Generator().manual_seed(33)
    x = torch.randn(n, 12, generator=g) * torch.linspace(0.1, 20, 12) + 3
    w = torch.randn(12, generator=g)
    xn = legacy_normalise(x)
    return TensorDataset(xn, torch.tanh(xn @ w / 2) + 0.6 * torch.randn(n, generator=g))


def main():
    acc = Accelerator(cpu=True, gradient_accumulation_steps=4)
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.Linear(32, 1), nn.Flatten(0))
    opt = torch.optim.AdamW(net.parameters(), lr=4e-3)
    dl = DataLoader(table(), batch_size=8, shuffle=True)
    net, opt, dl = acc.prepare(net, opt, dl)
    tracker, failures, n, seen = Tracker(), 0, 0, 0.0
    for epoch in range(3):
        for x, y in dl:
            with acc.accumulate(net):
                loss = nn.functional.mse_loss(net(x), y)
                acc.backward(loss)
                opt.step()
                opt.zero_grad()
            n += 1
            seen += loss.item()
            if n % 20 == 0:
                log.info("micro-step %d epoch %d loss %.4f (avg of 20: %.4f)", n, epoch, loss.item(), seen / 20)
                seen = 0.0
            if n % 150 == 0:
                try:
                    tracker.send(n, {"loss": loss.item()})
                except ConnectionError:
                    failures += 1
                    log.warning("tracker unreachable (%d), metrics kept locally, training continues", failures, exc_info=True)
                    warnings.warn("torch.tracker: 'sync' argument is deprecated", FutureWarning)
                    time.sleep(0.05)
    log.info("finished %d micro-steps, %d optimizer steps", n, n // 4)


if __name__ == "__main__":
    main()
