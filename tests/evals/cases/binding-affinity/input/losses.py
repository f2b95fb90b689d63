import torch
import torch.nn as nn


class PearsonLoss(nn.Module):
    """1 - r between predicted and measured affinities of a batch."""

    def __init__(self, eps=1e-8):
        super().__init__()
        self.eps = eps

    def forward(self, pred, meas):
        p = (pred - pred.mean()) / (pred.std() + self.eps)
        m = (meas - meas.mean()) / (meas.std() + self.eps)
        return 1 - (p * m).mean()


class AffinityLoss(nn.Module):
    def __init__(self, share=0.5):
        super().__init__()
        self.share = share
        self.rank = PearsonLoss()
        self.level = nn.HuberLoss()

    def forward(self, pred, meas):
        return self.share * self.rank(pred, meas) + (1 - self.share) * self.level(pred, meas)
