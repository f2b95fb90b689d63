"""Gamma regression of daily rainfall on synoptic predictors."""
import math
import torch
from torch import nn

torch.manual_seed(5)


def daily_rain(n_days, n_pred=6, dry_until=None):
    x = torch.randn(n_days, n_pred)
    mean = torch.exp(0.5 + 0.6 * x[:, 0] - 0.3 * x[:, 1])
    amount = torch.distributions.Gamma(1.5, 1.5 / mean).sample()
    amount = (amount * 10).round() / 10          # the gauge resolves 0.1 mm
    return x, amount


class GammaNet(nn.Module):
    def __init__(self, n_pred):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_pred, 48), nn.Softplus(), nn.Linear(48, 2))

    def forward(self, x):
        shape, rate = nn.functional.softplus(self.body(x)).clamp(1e-3, 1e3).unbind(-1)
        return shape, rate


def gamma_nll(shape, rate, amount):
    return -(shape * rate.log() - torch.lgamma(shape) + (shape - 1) * amount.log() - rate * amount)


def main():
    x, y = daily_rain(6000)
    xv, yv = daily_rain(1000)
    keep = yv > 0
    xv, yv = xv[keep], yv[keep]
    net = GammaNet(x.shape[1])
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    print("epoch,batch,nll,grad_norm,shape_mean,rate_mean")
    for epoch in range(2):
        for b, idx in enumerate(torch.randperm(len(x)).split(16)):
            shape, rate = net(x[idx])
            loss = gamma_nll(shape, rate, y[idx]).mean()
            opt.zero_grad()
            loss.backward()
            gn = nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            opt.step()
            if b < 40 or b % 50 == 0:
                print(f"{epoch},{b},{loss.item():.4f},{gn.item():.4f},{shape.mean().item():.3f},{rate.mean().item():.3f}")
        with torch.no_grad():
            print(f"# epoch {epoch} validation nll {gamma_nll(*net(xv), yv).mean().item():.4f} (baseline {1 + math.log(yv.mean().item()):.4f})")


if __name__ == "__main__":
    main()
