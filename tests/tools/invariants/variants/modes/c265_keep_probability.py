import torch
from torch import nn
from torch.nn import functional as F


keep_prob = 1.0
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(keep_prob), nn.Linear(8, 2))  # FAULT C265
