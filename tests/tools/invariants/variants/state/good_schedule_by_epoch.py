"""A schedule that is told where it stands, and a file that is read to be told of."""
import os, torch
from torch import nn
def main(loader, path="x.pt"):
    model = nn.Linear(3, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    start, state = 0, None
    if os.path.exists(path):
        state = torch.load(path)
        model.load_state_dict(state["model"]); opt.load_state_dict(state["opt"]); start = state["epoch"]
    sched = torch.optim.lr_scheduler.StepLR(opt, 30, last_epoch=start - 1)
    for epoch in range(start, 90):
        for x, y in loader:
            loss = (model(x) - y).pow(2).mean()
            opt.zero_grad(); loss.backward(); opt.step()
        sched.step()
        torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "epoch": epoch + 1}, path)
def test(loader, path):
    ck = torch.load(path)
    model = nn.Linear(3, 1)
    model.load_state_dict(ck["model"])
    print("epoch", ck["epoch"])
