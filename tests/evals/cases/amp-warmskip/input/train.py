import argparse
import logging

import torch
import torch.nn as nn

logging.basicConfig(level=logging.INFO, format="%(levelname)s:%(name)s:%(message)s")
logger = logging.getLogger("amp")


class Residual(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.ln, self.a, self.b = nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        return x + self.b(torch.relu(self.a(self.ln(x))))


def friedman(n):
    x = torch.rand(n, 10)
    y = 10 * torch.sin(3.1416 * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    return x, (y + torch.randn(n)).unsqueeze(1)


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--steps", type=int, default=400)
    cli.add_argument("--lr", type=float, default=2e-3)
    cli.add_argument("--clip", type=float, default=2.0)
    cli.add_argument("--batch", type=int, default=128)
    o = cli.parse_args()
    torch.manual_seed(9)
    reg = nn.Sequential(nn.Linear(10, 48), Residual(48), Residual(48), nn.Linear(48, 1))
    adam = torch.optim.Adam(reg.parameters(), o.lr)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 17, growth_interval=60)
    xt, yt = friedman(1000)
    skipped = 0
    for k in range(o.steps):
        x, y = friedman(o.batch)
        with torch.autocast("cpu", dtype=torch.float16):
            guess = reg(x)
        objective = nn.functional.mse_loss(guess.float(), y)
        adam.zero_grad()
        scaler.scale(objective).backward()
        scaler.unscale_(adam)
        norm = nn.utils.clip_grad_norm_(reg.parameters(), o.clip)
        before = scaler.get_scale()
        scaler.step(adam)
        scaler.update()
        if scaler.get_scale() < before:
            skipped += 1
            logger.warning("step %d: gradient overflow (norm %s), skipping step, reducing loss scale to %g", k, norm.item(), scaler.get_scale())
        if k % 40 == 0 or k == o.steps - 1:
            with torch.no_grad():
                rmse = nn.functional.mse_loss(reg(xt), yt).sqrt().item()
            logger.info("step %d mse %.3f grad_norm %.2f scale %g test_rmse %.3f", k, objective.item(), norm, scaler.get_scale(), rmse)
    logger.info("finished: %d of %d steps skipped, target std %.3f", skipped, o.steps, yt.std())


if __name__ == "__main__":
    main()
