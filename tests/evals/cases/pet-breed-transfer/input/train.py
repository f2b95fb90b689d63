"""Fine-tune a backbone (pretrained on shelter photos) for pet breeds."""
import json
import torch
from torch import nn

torch.manual_seed(44)
D = 32
MIX = torch.randn(D, D) / D ** 0.5


class Net(nn.Module):
    def __init__(self, n_out):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(D, 96), nn.GELU(), nn.Linear(96, 64), nn.GELU())
        self.head = nn.Linear(64, n_out)

    def forward(self, x):
        return self.head(self.backbone(x))


def photos(n, proto, noise):
    y = torch.randint(0, len(proto), (n,))
    return torch.tanh((proto[y] + noise * torch.randn(n, D)) @ MIX), y


def run_epoch(model, x, y, opt=None, bs=64):
    right = loss_sum = 0.0
    for idx in torch.randperm(len(x)).split(bs):
        with torch.set_grad_enabled(opt is not None):
            out = model(x[idx])
            loss = nn.functional.cross_entropy(out, y[idx])
        if opt is not None:
            opt.zero_grad()
            loss.backward()
            opt.step()
        right += (out.argmax(1) == y[idx]).sum().item()
        loss_sum += loss.item() * len(idx)
    return {"loss": round(loss_sum / len(x), 4), "acc": round(right / len(x), 4)}


def pretrained():
    x, y = photos(3000, torch.randn(8, D), 0.7)
    model = Net(8)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(5):
        stats = run_epoch(model, x, y, opt)
    print(json.dumps({"pretraining": stats}))
    return model


class FineTuner:
    def __init__(self, model, n_breeds, head_lr, backbone_lr):
        self.model = model
        self.opt = torch.optim.AdamW([
            {"params": model.head.parameters(), "lr": head_lr},
            {"params": model.backbone.parameters(), "lr": backbone_lr},
        ], weight_decay=0.01)
        self.reset_head(n_breeds)

    def reset_head(self, n_breeds):
        self.model.head = nn.Linear(self.model.head.in_features, n_breeds)

    def fit(self, train, val, epochs):
        for e in range(epochs):
            self.model.train()
            tr = run_epoch(self.model, *train, self.opt)
            self.model.eval()
            print(json.dumps({"epoch": e, "train": tr, "val": run_epoch(self.model, *val),
                              "lrs": [g["lr"] for g in self.opt.param_groups]}))


def main():
    model = pretrained()
    breeds = torch.randn(20, D)
    tuner = FineTuner(model, len(breeds), head_lr=1e-2, backbone_lr=2e-5)
    tuner.fit(photos(2000, breeds, 0.5), photos(800, breeds, 0.5), epochs=12)


if __name__ == "__main__":
    main()
