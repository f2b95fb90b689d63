"""Step is an object."""
import torch
from torch.amp import GradScaler, autocast


class Amp:

    def __init__(self, model, opt):
        self.model, self.opt, self.scaler = (model, opt, GradScaler('cuda'))

    def __call__(self, x, y):
        with autocast('cuda', dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.opt)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.opt)
        self.scaler.update()
        self.opt.zero_grad()


def main(model, loader):
    step = Amp(model.cuda(), torch.optim.Adam(model.parameters(), 0.001))
    for x, y in loader:
        step(x.cuda(), y.cuda())
