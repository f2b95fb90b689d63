"""A data set of sounds draws its own noise; both parts of it are read by loops."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class Clips(Dataset):
    def __init__(self, waves, kinds):
        self.waves, self.kinds = waves, kinds

    def __len__(self):
        return len(self.kinds)

    def _louder(self, wave):
        return wave * (0.5 + torch.rand(1)) + 0.05 * torch.randn(wave.shape)

    def __getitem__(self, i):
        return self._louder(self.waves[i]), self.kinds[i]


def parts(clips):
    return random_split(clips, [900, 100])


def main():
    a, b = parts(Clips(torch.randn(1000, 160), torch.randint(0, 4, (1000,))))
    feed = DataLoader(a, batch_size=20, shuffle=True)
    check = DataLoader(b, batch_size=50)  # FAULT C228
    net = nn.Linear(160, 4)
    adam = torch.optim.Adam(net.parameters())
    for _ in range(9):
        for x, y in feed:
            adam.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            adam.step()
        with torch.no_grad():
            print(sum((net(x).argmax(1) == y).sum().item() for x, y in check))


main()
