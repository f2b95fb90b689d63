"""A schedule that is saved by a helper and restored by nobody."""
import os, torch, copy
from torch import nn
def pack(model, opt, sched, step):
    return {"model": model.state_dict(), "opt": opt.state_dict(), "lr": sched.state_dict(), "step": step}
def unpack(path, model, opt):
    ck = torch.load(path)
    model.load_state_dict(ck["model"])  # FAULT C205
    opt.load_state_dict(ck["opt"])
    return ck["step"]
def main(loader, path="x.pt"):
    model = nn.Linear(3, 1)
    opt = torch.optim.Adam(model.parameters())
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 1000)
    step = unpack(path, model, opt) if os.path.exists(path) else 0
    while step < 1000:
        for x, y in loader:
            loss = (model(x) - y).pow(2).mean()
            opt.zero_grad(); loss.backward(); opt.step(); sched.step()
            step += 1
        torch.save(pack(model, opt, sched, step), path)
