"""Windows of a series, of which it is known that it has one axis by what an LSTM takes."""
import numpy as np
import torch
from torch import nn, Tensor
from torch.utils.data import Dataset, DataLoader


class Series(Dataset):
    def __init__(self, values: np.ndarray, window: int):
        self.values, self.window = values.astype(np.float32), window

    def __len__(self):
        return len(self.values) - self.window

    def __getitem__(self, i):
        return self.values[i:i + self.window], self.values[i + self.window]


class Forecaster(nn.Module):
    def __init__(self, window):
        super().__init__()
        self.lstm = nn.LSTM(1, 32, batch_first=True)
        self.out = nn.Linear(32, 1)

    def forward(self, x: Tensor) -> Tensor:
        h, _ = self.lstm(x.unsqueeze(-1))
        return self.out(h[:, -1])


def train(values):
    loader = DataLoader(Series(values, 24), batch_size=64, shuffle=True)
    model = Forecaster(24)
    opt = torch.optim.Adam(model.parameters(), 1e-3)
    mae = nn.L1Loss()
    for epoch in range(10):
        for x, y in loader:
            loss = mae(model(x), y)  # FAULT C109
            opt.zero_grad(); loss.backward(); opt.step()
