"""A schedule that is kept and never stepped."""
import torch
from torch import nn
class Runner:
    def __init__(self, model, loader, epochs):
        self.model, self.loader, self.epochs = model, loader, epochs
        self.opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
        self.sched = torch.optim.lr_scheduler.StepLR(self.opt, step_size=10, gamma=0.5)  # FAULT C110
    def run(self):
        for e in range(self.epochs):
            for x, y in self.loader:
                loss = (self.model(x) - y).abs().mean()
                self.opt.zero_grad(); loss.backward(); self.opt.step()
            print(e, self.opt.param_groups[0]["lr"])
