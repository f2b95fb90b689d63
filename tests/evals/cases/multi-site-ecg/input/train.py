"""Beat classification over four recording sites. One micro-batch per site, one update per round of sites."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import yaml
from probe import GradProbe

SITES = ["aarhus", "bergen", "coimbra", "dresden"]
L, CLASSES = 64, 4


def site_data(k, n, g):
    """Every site has its own lead placement, so polarity / scale / time shift differ by site."""
    y = torch.randint(0, CLASSES, (n,), generator=g)
    t = torch.linspace(-1, 1, L)
    width = torch.tensor([0.06, 0.10, 0.16, 0.10])[y][:, None]
    beat = torch.exp(-((t - 0.15 * (k - 1.5)) / width) ** 2)
    tail = torch.where(y == 3, 0.7, -0.25)[:, None] * torch.exp(-((t - 0.45) / 0.12) ** 2)
    pol = [1.0, -1.0, 0.55, -0.4][k]
    x = pol * (beat + tail) + 0.12 * torch.randn(n, L, generator=g)
    return x, y


class BeatNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.trunk = nn.Sequential(nn.Unflatten(1, (1, L)), nn.Conv1d(1, 16, 9, 2, 4), nn.ReLU(), nn.Conv1d(16, 16, 9, 2, 4), nn.ReLU(), nn.Flatten(),
                                   nn.Linear(16 * L // 4, width), nn.ReLU())
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        return self.head(self.trunk(x))


@torch.no_grad()
def accuracy(model, val):
    return {s: (model(x).argmax(1) == y).float().mean().item() for s, (x, y) in val.items()}


def main():
    cfg = yaml.safe_load(open("config.yaml"))
    torch.manual_seed(cfg["seed"])
    g = torch.Generator().manual_seed(cfg["seed"])
    train = {s: site_data(k, cfg["per_site"], g) for k, s in enumerate(SITES)}
    val = {s: site_data(k, 400, g) for k, s in enumerate(SITES)}
    model = BeatNet()
    opt = torch.optim.SGD(model.parameters(), lr=cfg["lr"], momentum=0.9, weight_decay=1e-4)
    probe = GradProbe(model, model.trunk)
    rounds = cfg["per_site"] // cfg["micro_batch"]
    for epoch in range(cfg["epochs"]):
        perm = {s: torch.randperm(cfg["per_site"], generator=g) for s in SITES}
        seen = {s: 0.0 for s in SITES}
        for r in range(rounds):
            opt.zero_grad()
            for s in SITES:
                idx = perm[s][r * cfg["micro_batch"]:(r + 1) * cfg["micro_batch"]]
                x, y = train[s]
                loss = F.cross_entropy(model(x[idx]), y[idx]) / len(SITES)
                if cfg["probe"]:
                    probe.measure(s, loss)
                loss.backward()
                seen[s] += loss.item() * len(SITES) / rounds
            opt.step()
        acc = accuracy(model, val)
        print(f"epoch {epoch:2d} loss " + " ".join(f"{s}={seen[s]:.3f}" for s in SITES) + " | acc " +
              " ".join(f"{s}={acc[s]:.3f}" for s in SITES) + " | mean %.3f" % (sum(acc.values()) / 4) + (" | trunk grad " + probe.line() if cfg["probe"] else ""))


if __name__ == "__main__":
    main()
