import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F


class Digits(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.stack = nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x):
        return self.stack(x)

    def training_step(self, batch, _):
        x, y = batch
        scores = self(x)
        chances = torch.log_softmax(scores, 0)  # FAULT C134
        return F.nll_loss(chances, y)


class Stages(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.read = nn.GRU(6, width, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.1)
        self.top = nn.Linear(2 * width, 5)
        self.norm = nn.LogSoftmax(dim=1)

    def forward(self, x):
        states = self.read(x)[0]
        return self.norm(self.top(self.drop(states)))  # FAULT C350


class Tags(nn.Module):
    def __init__(self, words=90, width=32, tags=7):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.attend = nn.MultiheadAttention(width, 4, batch_first=True)
        self.tag = nn.Linear(width, tags)

    def forward(self, ids):
        x = self.embed(ids)
        x = x + self.attend(x, x, x)[0]
        chances = F.softmax(self.tag(x), dim=-2)  # FAULT C350
        return torch.log(chances)


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.top = nn.Embedding(300, 16), nn.Linear(16, 4)

    def forward(self, ids):
        seen = self.embed(ids)
        pooled = seen.sum(0) / 3.0  # FAULT C134
        return self.top(pooled)


def fit(net, loader, classes):
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        loss = F.nll_loss(net(x).reshape(-1, classes), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


fit(Stages(), [(torch.randn(2, 9, 6), torch.zeros(2, 9).long())], 5)
fit(Tags(), [(torch.zeros(2, 9).long(), torch.zeros(2, 9).long())], 7)
for ids, y in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.zeros(8, 3).long(), torch.zeros(8).long()), 4):
    print(F.cross_entropy(Bag()(ids), y))
