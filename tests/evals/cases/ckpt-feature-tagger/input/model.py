import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class MixerLayer(nn.Module):
    def __init__(self, length, dim):
        super().__init__()
        self.norm_t, self.norm_c = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.token = nn.Sequential(nn.Linear(length, 2 * length), nn.GELU(), nn.Linear(2 * length, length))
        self.channel = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, h):
        h = h + self.token(self.norm_t(h).transpose(1, 2)).transpose(1, 2)
        return h + self.channel(self.norm_c(h))


class ClipClassifier(nn.Module):
    """Mixer over precomputed frame features."""

    def __init__(self, length=12, dim=32, depth=3, n_classes=6, save_memory=True):
        super().__init__()
        self.layers = nn.ModuleList(MixerLayer(length, dim) for _ in range(depth))
        self.final_norm = nn.LayerNorm(dim)
        self.readout = nn.Linear(dim, n_classes)
        self.save_memory = save_memory

    def forward(self, feats):
        h = feats
        for layer in self.layers:
            if self.save_memory and self.training:
                h = checkpoint(layer, h, use_reentrant=True)
            else:
                h = layer(h)
        return self.readout(self.final_norm(h.mean(1)))
