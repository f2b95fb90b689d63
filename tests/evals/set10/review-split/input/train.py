import os
import time

import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(99)


class Bag:
    def __init__(self, split):
        z = np.load(os.path.join("splits", split + ".npz"))
        x = torch.from_numpy(z["counts"]).float()
        self.x = torch.log1p(x)
        self.y = torch.from_numpy(z["label"])
        print("%-6s %5d reviews  positive %.2f" % (split, len(self.y), self.y.float().mean()))

    def batches(self, size, shuffle=False):
        order = torch.randperm(len(self.y)) if shuffle else torch.arange(len(self.y))
        for idx in order.split(size):
            yield self.x[idx], self.y[idx]


class ReviewNet(nn.Module):
    def __init__(self, n_words, hidden):
        super().__init__()
        self.inp = nn.Linear(n_words, hidden)
        self.mid = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 2)
        self.drop = nn.Dropout(0.3)

    def forward(self, x):
        h = self.drop(torch.relu(self.inp(x)))
        h = self.drop(torch.relu(self.mid(h)))
        return self.out(h)


@torch.no_grad()
def score(model, bag):
    model.eval()
    good = 0
    ce = 0.0
    for x, y in bag.batches(200):
        o = model(x)
        ce += nn.functional.cross_entropy(o, y, reduction="sum").item()
        good += (o.argmax(1) == y).sum().item()
    return ce / len(bag.y), good / len(bag.y)


train, valid, test = Bag("train"), Bag("valid"), Bag("test")
model = ReviewNet(train.x.shape[1], 256)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
best_acc, best_state = 0.0, None
start = time.time()

for epoch in range(1, 41):
    model.train()
    total = 0.0
    for x, y in train.batches(32, shuffle=True):
        loss = nn.functional.cross_entropy(model(x), y, label_smoothing=0.02)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(y)
    ce, acc = score(model, valid)
    star = ""
    if acc > best_acc:
        best_acc, star = acc, "*"
        best_state = {k: v.clone() for k, v in model.state_dict().items()}
    if epoch % 4 == 0 or epoch == 1:
        print("ep %2d  train loss %.3f  valid loss %.3f  valid acc %.3f %s" % (epoch, total / len(train.y), ce, acc, star))

model.load_state_dict(best_state)
ce, acc = score(model, test)
print("best valid acc %.3f  ->  test loss %.3f  test acc %.3f   (%.0f s)" % (best_acc, ce, acc, time.time() - start))
