"""Two-stage training of a turbine power-curve model: pretrain on the fleet, continue on one turbine."""
import io
import json
import torch
from torch import nn

torch.manual_seed(21)


def scada(n, derate=1.0):
    wind = 3 + 12 * torch.rand(n)
    pitch, temp, direction = torch.randn(3, n)
    power = derate * torch.clamp((wind / 12) ** 3, max=1.0) * (1 - 0.05 * pitch.abs()) + 0.01 * torch.randn(n)
    return torch.stack([wind / 10, pitch, temp, direction], 1), power[:, None]


class PowerCurve(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 64), nn.SiLU(), nn.Linear(64, 32), nn.SiLU())
        self.head = nn.Linear(32, 1)

    def forward(self, x):
        return self.head(self.encoder(x))


def emit(**kw):
    print(json.dumps(kw), flush=True)


def epoch_pass(model, opt, x, y, bs=128):
    total = 0.0
    for idx in torch.randperm(len(x)).split(bs):
        loss = nn.functional.mse_loss(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    return total / len(x)


def pretrain(buffer):
    model = PowerCurve()
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-4)
    x, y = scada(2000)
    for e in range(4):
        emit(stage="fleet", epoch=e, mse=round(epoch_pass(model, opt, x, y), 5))
    torch.save({"model": model.state_dict(), "optim": opt.state_dict(), "epoch": e}, buffer)
    emit(stage="fleet", saved=True, keys=len(model.state_dict()))


def adapt(buffer):
    buffer.seek(0)
    ckpt = torch.load(buffer)
    model = PowerCurve()
    emit(stage="turbine_17", load=str(model.load_state_dict(ckpt["model"])))
    ordered = list(model.head.parameters()) + list(model.encoder.parameters())
    opt = torch.optim.AdamW(ordered, lr=3e-3, weight_decay=1e-4)
    opt.load_state_dict(ckpt["optim"])
    emit(stage="turbine_17", resumed_from=ckpt["epoch"], lr=opt.param_groups[0]["lr"])
    x, y = scada(500, derate=0.9)
    for e in range(4):
        emit(stage="turbine_17", epoch=e, mse=round(epoch_pass(model, opt, x, y), 5))


if __name__ == "__main__":
    store = io.BytesIO()
    pretrain(store)
    adapt(store)
