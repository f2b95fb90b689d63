import torch
from torch import nn


class Big(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 3))

    def forward(self, x):
        return self.layers(x)


def main(batches, path):
    large, small = Big(), nn.Linear(6, 3)
    large.load_state_dict(torch.load(path)["model"])
    large.requires_grad_(False)
    opt = torch.optim.Adam(small.parameters(), lr=1e-3)
    for x, _ in batches:
        with torch.no_grad():
            wanted = large(x)  # FAULT C165
        loss = nn.functional.mse_loss(small(x), wanted)
        opt.zero_grad()
        loss.backward()
        opt.step()


main([], "large.pt")
