import torch
from torch.utils.data import TensorDataset


def customers(n, seed):
    """mixed tabular data; the label itself is noisy (Bayes accuracy about 0.86)"""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 12, generator=g)
    score = 1.6 * x[:, 0] - 1.2 * x[:, 1] * x[:, 2] + torch.relu(x[:, 3]) * 1.5 - 0.8 * x[:, 4] - 0.5
    y = (torch.rand(n, generator=g) < torch.sigmoid(2.0 * score)).long()
    return TensorDataset(x, y)
