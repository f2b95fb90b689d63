"""All parts go through one table."""
import os, torch
from torch import nn
class T:
    def __init__(self, model, loader, path):
        self.model, self.loader, self.path = model, loader, path
        self.opt = torch.optim.Adam(model.parameters())
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, 100)
        self.epoch = 0
    def parts(self):
        return {"model": self.model, "opt": self.opt, "sched": self.sched}
    def save(self):
        torch.save({**{k: v.state_dict() for k, v in self.parts().items()}, "epoch": self.epoch}, self.path)
    def load(self):
        ck = torch.load(self.path)
        for k, v in self.parts().items():
            v.load_state_dict(ck[k])
        self.epoch = ck["epoch"]
    def fit(self):
        if os.path.exists(self.path):
            self.load()
        while self.epoch < 100:
            for x, y in self.loader:
                loss = (self.model(x) - y).pow(2).mean()
                self.opt.zero_grad(); loss.backward(); self.opt.step()
            self.sched.step()
            self.epoch += 1
            self.save()
