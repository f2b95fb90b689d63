import torch
import torch.nn.functional as F
from torch import nn


class Siamese(nn.Module):
    def __init__(self, n_in, width=96, emb=48):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(n_in, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU())
        self.projector = nn.Sequential(nn.Linear(width, emb), nn.BatchNorm1d(emb), nn.ReLU(), nn.Linear(emb, emb))
        self.predictor = nn.Sequential(nn.Linear(emb, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, emb))

    def forward(self, a, b):
        za, zb = self.projector(self.backbone(a)), self.projector(self.backbone(b))
        pa, pb = self.predictor(za), self.predictor(zb)
        return 0.5 * (self.match(pa, zb) + self.match(pb, za)), self.spread(za)

    @staticmethod
    def match(p, z):
        return -F.cosine_similarity(p, z, dim=1).mean()

    @staticmethod
    @torch.no_grad()
    def spread(z):
        """std of the unit-length embeddings times sqrt(dim); 1 for an even distribution on the sphere"""
        u = F.normalize(z, dim=1)
        return (u.std(0).mean() * u.shape[1] ** 0.5).item()
