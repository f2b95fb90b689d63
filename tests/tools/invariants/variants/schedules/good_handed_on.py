"""Schedules that others step, or a list of them."""
import torch
from torch import nn
from ignite.engine import Engine, Events
def build(model, loader, epochs, attach):
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.StepLR(opt, step_size=10, gamma=0.5)
    attach(opt, sched)
    for e in range(epochs):
        for x, y in loader:
            loss = (model(x) - y).abs().mean()
            opt.zero_grad(); loss.backward(); opt.step()
class Loop:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        self.opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
        self.scheds = [torch.optim.lr_scheduler.LinearLR(self.opt), torch.optim.lr_scheduler.StepLR(self.opt, 3)]
    def fit(self, n):
        for e in range(n):
            for x, y in self.loader:
                loss = (self.model(x) - y).abs().mean()
                self.opt.zero_grad(); loss.backward(); self.opt.step()
            for s in self.scheds:
                s.step()
