import torch
import torch.nn as nn
import torch.nn.functional as F


class EpochEncoder(nn.Module):
    """One 30 s EEG epoch (2 channels, 64 points) -> a vector."""

    def __init__(self, dim):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(2, 16, 7, stride=2, padding=3), nn.GELU(),
            nn.Conv1d(16, dim, 5, stride=2, padding=2), nn.GELU(),
            nn.AdaptiveAvgPool1d(1),
        )

    def forward(self, x):
        return self.conv(x).squeeze(-1)


class NightTagger(nn.Module):
    """A sequence of epochs -> log-probabilities of the stage of every epoch, (night, epoch, stage)."""

    def __init__(self, stages, dim=32):
        super().__init__()
        self.encoder = EpochEncoder(dim)
        self.context = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * dim, stages)

    def forward(self, nights):
        b, t = nights.shape[:2]
        z = self.encoder(nights.flatten(0, 1)).view(b, t, -1)
        h, _ = self.context(z)
        return F.log_softmax(self.out(h), dim=1)
