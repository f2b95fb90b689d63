"""A loss scale that is saved and begins anew."""
import os, torch
from torch import nn
def main(loader, path="x.pt"):
    model = nn.Linear(3, 1).cuda()
    opt = torch.optim.Adam(model.parameters())
    scaler = torch.cuda.amp.GradScaler()
    start = 0
    if os.path.exists(path):
        ck = torch.load(path)
        model.load_state_dict(ck["model"]); opt.load_state_dict(ck["opt"]); start = ck["epoch"] + 1  # FAULT C205
    for epoch in range(start, 100):
        for x, y in loader:
            with torch.autocast("cuda"):
                loss = (model(x) - y).pow(2).mean()
            opt.zero_grad(); scaler.scale(loss).backward(); scaler.step(opt); scaler.update()
        torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "scaler": scaler.state_dict(), "epoch": epoch}, path)
