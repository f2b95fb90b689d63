import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset


class Clips(Dataset):
    def __init__(self, frames, labels, span):
        self.frames, self.labels, self.span = frames, labels, span

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        start = index * self.span
        return self.frames[start:start + self.span], self.labels[index]


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(12, 32)
        layer = nn.TransformerEncoderLayer(d_model=32, nhead=4)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2)
        self.gate = nn.Softmax(dim=0)
        self.out = nn.Linear(32, 6)

    def forward(self, clip):
        h = self.encoder(self.up(clip))  # FAULT C134
        return self.gate(self.out(h[:, -1]))  # FAULT C134


def main():
    frames, labels = torch.randn(4000, 12), torch.randint(0, 6, (200,))
    model = Reader()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for clip, label in DataLoader(Clips(frames, labels, 20), batch_size=8, shuffle=True):
        loss = F.mse_loss(model(clip), F.one_hot(label, 6).float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
