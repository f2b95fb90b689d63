import copy

import numpy as np
import torch
import yaml
from torch import nn

from prepare import auc, read


def build(n_in, layers, dropout):
    parts, width = [], n_in
    for w in layers:
        parts += [nn.Linear(width, w), nn.ReLU(), nn.Dropout(dropout)]
        width = w
    return nn.Sequential(*parts, nn.Linear(width, 1))


@torch.no_grad()
def predict(model, x):
    model.eval()
    return model(x).squeeze(1).numpy()


def main():
    p = yaml.safe_load(open("params.yaml"))
    torch.manual_seed(p["seed"])
    x, y, names = read(p["train"])
    xv, yv, _ = read(p["valid"])
    xh, yh, _ = read(p["holdout"])
    mean, std = x.mean(0), x.std(0)
    x, xv, xh = (torch.from_numpy((a - mean) / std) for a in (x, xv, xh))
    t = torch.from_numpy(y)
    model = build(len(names), **p["net"])
    o = p["optim"]
    opt = torch.optim.Adam(model.parameters(), lr=o["lr"])
    best, best_state, waited = -1.0, None, 0
    for epoch in range(1, o["max_epochs"] + 1):
        model.train()
        losses = []
        for rows in torch.randperm(len(x)).split(o["batch"]):
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[rows]).squeeze(1), t[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        score = auc(predict(model, xv), yv)
        print(f"epoch={epoch} loss={np.mean(losses):.4f} valid_auc={score:.4f}", flush=True)
        if score > best:
            best, best_state, waited = score, copy.deepcopy(model.state_dict()), 0
        else:
            waited += 1
            if waited >= o["patience"]:
                print(f"early stop, best valid_auc={best:.4f}")
                break
    model.load_state_dict(best_state)
    print(f"rows train={len(x)} valid={len(xv)} holdout={len(xh)}")
    print(f"FINAL valid_auc={best:.4f} holdout_auc={auc(predict(model, xh), yh):.4f}")


if __name__ == "__main__":
    main()
