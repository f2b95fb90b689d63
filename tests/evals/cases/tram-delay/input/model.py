import torch.nn as nn

from scaling import RunningScaler


class DelayNet(nn.Module):
    def __init__(self, dim=10):
        super().__init__()
        self.scaler = RunningScaler(dim)
        self.body = nn.Sequential(nn.Linear(dim, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))

    def forward(self, x, warm=False):
        if warm:
            self.scaler.update(x)
        return self.body(self.scaler(x)).squeeze(-1)
