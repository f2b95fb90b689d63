import copy

import torch
from torch import nn
from torch.nn import functional as F


def build(width, hidden, depth):
    layers, d = [], width
    for _ in range(depth):
        layers += [nn.Linear(d, hidden), nn.ReLU()]
        d = hidden
    return nn.Sequential(*layers, nn.Linear(d, 1))


@torch.no_grad()
def predict(model, x):
    model.eval()
    return model(x).squeeze(-1)


def auc(score, y):
    pos, neg = score[y == 1], score[y == 0]
    diff = pos[:, None] - neg[None]
    return ((diff > 0).float() + 0.5 * (diff == 0).float()).mean().item()


def fit(cfg, train, val):
    o = cfg["optim"]
    torch.manual_seed(cfg["seed"])
    (x, y), (xv, yv) = train, val
    model = build(x.shape[1], cfg["model"]["hidden"], cfg["model"]["depth"])
    opt = torch.optim.AdamW(model.parameters(), lr=o["lr"], weight_decay=o["weight_decay"])
    best, best_state = -1.0, None
    for epoch in range(o["epochs"]):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(o["batch_size"]):
            loss = F.binary_cross_entropy_with_logits(model(x[idx]).squeeze(-1), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        score = predict(model, xv)
        a = auc(score, yv)
        if a > best:
            best, best_state = a, copy.deepcopy(model.state_dict())
        if epoch % 3 == 0 or epoch == o["epochs"] - 1:
            vl = F.binary_cross_entropy_with_logits(score, yv).item()
            print(f"epoch {epoch:2d}  train loss {total / len(x):.4f}  val loss {vl:.4f}  val auc {a:.3f}", flush=True)
    model.load_state_dict(best_state)
    return model, best
