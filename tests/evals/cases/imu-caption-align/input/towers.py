import torch
import torch.nn as nn
import torch.nn.functional as F


class MotionTower(nn.Module):
    def __init__(self, channels=6, dim=64):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(channels, 48, 5, padding=2), nn.GELU(),
            nn.Conv1d(48, 64, 5, stride=2, padding=2), nn.GELU(),
            nn.AdaptiveAvgPool1d(4), nn.Flatten(),
        )
        self.proj = nn.Linear(256, dim)

    def forward(self, x):
        return self.proj(self.conv(x))


class CaptionTower(nn.Module):
    def __init__(self, vocab, dim=64):
        super().__init__()
        self.emb = nn.EmbeddingBag(vocab, 96, mode="mean")
        self.mlp = nn.Sequential(nn.Linear(96, 128), nn.GELU(), nn.Linear(128, dim))

    def forward(self, ids):
        return self.mlp(self.emb(ids))


class Aligner(nn.Module):
    def __init__(self, vocab, temperature):
        super().__init__()
        self.motion = MotionTower()
        self.caption = CaptionTower(vocab)
        self.temperature = temperature

    def encode(self, x, ids):
        return F.normalize(self.motion(x), dim=-1), F.normalize(self.caption(ids), dim=-1)

    def forward(self, x, ids):
        m, c = self.encode(x, ids)
        scores = m @ c.t() * self.temperature
        target = torch.arange(len(x), device=x.device)
        return 0.5 * (F.cross_entropy(scores, target) + F.cross_entropy(scores.t(), target))
