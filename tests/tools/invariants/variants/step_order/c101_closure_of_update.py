import torch
from torch import nn


def batches(n=64):
    for _ in range(n):
        yield torch.randn(8, 6), torch.randint(0, 3, (8,))


def make_update(model, lr):
    rule = torch.optim.Adam(model.parameters(), lr=lr)

    def update(x, y):
        value = nn.functional.cross_entropy(model(x), y)
        value.backward()
        rule.step()  # FAULT C101
        return value.detach()

    return update


update = make_update(nn.Linear(6, 3), 1e-3)
for x, y in batches():
    print(update(x, y))
