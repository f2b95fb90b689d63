"""Fine-tune the city-sound backbone on four siren types (160 clips).

With so few clips the BatchNorm layers keep the statistics of pre-training, the
two lower blocks stay as they are, and the top block gets a tenth of the head's
learning rate.
"""
import numpy as np
import torch
from torch import nn

from model import Backbone, Tagger

torch.manual_seed(31)
EPOCHS, BATCH = 80, 8


def freeze_norms(module):
    for m in module.modules():
        if isinstance(m, nn.BatchNorm1d):
            m.eval()
            for p in m.parameters():
                p.requires_grad_(False)


def train_mode(model):
    model.train()
    freeze_norms(model.backbone)       # .train() would switch them back


@torch.no_grad()
def test(model, x, y):
    model.eval()
    out = model(x)
    return nn.functional.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


z = np.load("sirens.npz")
x, y = torch.tensor(z["x_train"]), torch.tensor(z["y_train"])
xt, yt = torch.tensor(z["x_test"]), torch.tensor(z["y_test"])

backbone = Backbone()
print(backbone.load_state_dict(torch.load("backbone.pt")))
model = Tagger(backbone, int(y.max()) + 1)
for block in (backbone.low, backbone.mid):
    block.requires_grad_(False)
train_mode(model)
groups = [
    {"params": [p for p in backbone.high.parameters() if p.requires_grad], "lr": 3e-4},
    {"params": model.head.parameters(), "lr": 3e-3},
]
opt = torch.optim.AdamW(groups, weight_decay=1e-2)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda e: min(1.0, (e + 1) / 5) * 0.5 * (1 + np.cos(np.pi * e / EPOCHS)))

total = sum(p.numel() for p in model.parameters())
active = sum(p.numel() for g in groups for p in (g["params"] if isinstance(g["params"], list) else model.head.parameters()))
print(f"clips {len(x)} train / {len(xt)} test, {active} of {total} parameters are trained")
before = {k: v.clone() for k, v in model.state_dict().items()}

for epoch in range(EPOCHS):
    train_mode(model)
    loss_sum = 0.0
    for idx in torch.randperm(len(x)).split(BATCH):
        xb = x[idx] + 0.2 * torch.randn_like(x[idx])
        loss = nn.functional.cross_entropy(model(xb), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        loss_sum += loss.item() * len(idx)
    sched.step()
    if (epoch + 1) % 5 == 0:
        tl, ta = test(model, xt, yt)
        print(f"epoch {epoch + 1:2d}  train loss {loss_sum / len(x):.4f}  test loss {tl:.4f}  test acc {ta:.3f}")

same = [k for k, v in model.state_dict().items() if torch.equal(v, before[k])]
print(f"tensors unchanged after training: {len(same)} of {len(before)}: {', '.join(same)}")
