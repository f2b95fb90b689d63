import torch
from torch import nn
def fit(model, data):
    opt = torch.optim.SGD(model.parameters(), 0.1)
    avg = None
    for x, y in data:
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
        if avg is None:
            avg = loss
        else:
            avg = 0.9 * avg + 0.1 * loss  # FAULT C103
        print(float(avg))
