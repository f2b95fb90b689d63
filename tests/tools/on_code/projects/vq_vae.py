"""A VQ-VAE on small images with a straight-through estimator."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Quantizer(nn.Module):
    def __init__(self, codes=64, width=16, commitment=0.25):
        super().__init__()
        self.codebook = nn.Embedding(codes, width)
        self.codebook.weight.data.uniform_(-1 / codes, 1 / codes)
        self.commitment = commitment

    def forward(self, z):
        flat = z.permute(0, 2, 3, 1).reshape(-1, z.shape[1])
        index = torch.cdist(flat, self.codebook.weight).argmin(dim=1)
        q = self.codebook(index).view(z.shape[0], z.shape[2], z.shape[3], -1).permute(0, 3, 1, 2)
        loss = F.mse_loss(q, z.detach()) + self.commitment * F.mse_loss(q.detach(), z)
        q = z + (q - z).detach()
        return q, loss, index


class Model(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 32, 4, stride=2, padding=1), nn.ReLU(), nn.Conv2d(32, width, 4, stride=2, padding=1)
        )
        self.quantizer = Quantizer(width=width)
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(width, 32, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(32, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        q, codes_loss, index = self.quantizer(self.encoder(x))
        return self.decoder(q), codes_loss, index


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.rand(2000, 1, 28, 28)), batch_size=64, shuffle=True)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    for epoch in range(10):
        used = torch.zeros(64)
        for (x,) in loader:
            rebuilt, codes_loss, index = model(x)
            loss = F.mse_loss(rebuilt, x) + codes_loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            used += torch.bincount(index, minlength=64)
        share = used / used.sum()
        entropy = -(share * share.clamp_min(1e-10).log()).sum()
        print(epoch, loss.item(), entropy.exp().item())


if __name__ == "__main__":
    main()
