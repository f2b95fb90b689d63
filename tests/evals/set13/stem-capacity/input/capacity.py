import sys
import tomllib

import h5py
import torch
from torch import nn


def read(path):
    with h5py.File(path, "r") as f:
        return torch.from_numpy(f["wave"][:]), torch.from_numpy(f["stem"][:]).long()


class StemNet(nn.Module):
    def __init__(self, width, dropout, n_out=5):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(2, width, 9, stride=2), nn.GELU(), nn.Conv1d(width, width, 9, stride=2), nn.GELU(),
            nn.Conv1d(width, 2 * width, 5, stride=2), nn.GELU(), nn.Dropout(dropout),
        )
        self.out = nn.Linear(2 * width, n_out)

    def forward(self, x):
        return self.out(self.body(x).mean(-1))


def main():
    with open("capacity.toml", "rb") as fh:
        c = tomllib.load(fh)
    torch.manual_seed(c["fit"]["seed"])
    x, y = read(c["data"]["train"])
    xe, ye = read(c["data"]["eval"])
    net = StemNet(**c["model"])
    opt = torch.optim.AdamW(net.parameters(), lr=c["fit"]["lr"], weight_decay=c["fit"]["weight_decay"])
    acc = 0.0
    for step in range(1, c["fit"]["steps"] + 1):
        net.train()
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            net.eval()
            with torch.no_grad():
                z = net(xe)
            acc = (z.argmax(1) == ye).float().mean().item()
            print(f"{c['purpose']} step {step} train_loss {loss:.5f} eval_loss {nn.functional.cross_entropy(z, ye):.5f} eval_acc {acc:.3f}", flush=True)
    verdict = "PASS" if acc >= c["fit"]["pass_at"] else "FAIL"
    print(f"{c['purpose']} check: {verdict} ({acc:.3f} of {len(ye)} clips)")
    sys.exit(verdict == "FAIL")


if __name__ == "__main__":
    main()
