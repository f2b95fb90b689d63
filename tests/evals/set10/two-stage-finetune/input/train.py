"""Stage 1: train the head on the frozen backbone. Stage 2: everything, with a decaying learning rate."""
import dataclasses

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


@dataclasses.dataclass
class Config:
    seed: int = 8
    batch: int = 32
    stage1_epochs: int = 4
    stage2_epochs: int = 16
    lr_head: float = 0.02
    lr_full: float = 0.03
    momentum: float = 0.9
    gamma: float = 0.75


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(cfg.seed)
        z = np.load("feat.npz")
        self.x, self.y = torch.from_numpy(z["x"]).float(), torch.from_numpy(z["y"])
        self.xv, self.yv = torch.from_numpy(z["xv"]).float(), torch.from_numpy(z["yv"])
        self.backbone = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.backbone.load_state_dict(torch.load("backbone.pt"))
        self.head = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 8))
        self.backbone.requires_grad_(False)
        self.build_optimizer(self.head.parameters(), cfg.lr_head)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.lr_factor)
        self.epoch = 0

    def lr_factor(self, epoch):
        late = max(0, epoch - self.cfg.stage1_epochs)
        return self.cfg.gamma ** late

    def build_optimizer(self, params, lr):
        self.optimizer = torch.optim.SGD(params, lr=lr, momentum=self.cfg.momentum, weight_decay=1e-4)

    def unfreeze(self):
        self.backbone.requires_grad_(True)
        params = [*self.backbone.parameters(), *self.head.parameters()]
        self.build_optimizer(params, self.cfg.lr_full)
        print(f"-- backbone unfrozen, {sum(p.numel() for p in params)} trainable parameters")

    def run_epoch(self):
        total, hits = 0.0, 0
        for idx in torch.randperm(len(self.x)).split(self.cfg.batch):
            out = self.head(self.backbone(self.x[idx]))
            loss = F.cross_entropy(out, self.y[idx])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(idx)
            hits += (out.argmax(1) == self.y[idx]).sum().item()
        factor = self.lr_factor(self.epoch)
        self.scheduler.step()
        self.epoch += 1
        return total / len(self.x), hits / len(self.x), factor

    @torch.no_grad()
    def validate(self):
        out = self.head(self.backbone(self.xv))
        return F.cross_entropy(out, self.yv).item(), (out.argmax(1) == self.yv).float().mean().item()

    def fit(self):
        cfg = self.cfg
        for e in range(cfg.stage1_epochs + cfg.stage2_epochs):
            if e == cfg.stage1_epochs:
                self.unfreeze()
            stage = 1 if e < cfg.stage1_epochs else 2
            tl, ta, factor = self.run_epoch()
            vl, va = self.validate()
            print(f"[stage {stage}] epoch {e + 1:2d}  lr factor {factor:.4f}  train {tl:.3f} acc {ta:.3f}  val {vl:.3f} acc {va:.3f}", flush=True)


if __name__ == "__main__":
    Trainer(Config()).fit()
