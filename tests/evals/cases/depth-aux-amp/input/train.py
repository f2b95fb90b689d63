"""Joint segmentation and depth heads on range-sensor sweeps, mixed precision."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(31)


@dataclass
class Hparams:
    points: int = 32
    channels: int = 32
    batch: int = 64
    iterations: int = 360
    lr: float = 0.05
    momentum: float = 0.9
    depth_weight: float = 1.0
    use_amp: bool = True
    device: str = "cpu"


def sweep(n, points):
    """A sweep crosses an object (label 1) whose range differs from the wall behind it."""
    grid = torch.arange(points)[None]
    start = torch.randint(2, points - 12, (n, 1))
    width = torch.randint(4, 11, (n, 1))
    inside = (grid >= start) & (grid < start + width)
    wall, gap = 1 + torch.rand(n, 1), 0.5 + 0.4 * torch.rand(n, 1)
    depth = wall - gap * inside
    echo = torch.stack([1 / depth + 0.05 * torch.randn(n, points), 0.3 * inside + 0.2 * torch.randn(n, points)], 1)
    return echo, inside.long(), depth


class TwoHeads(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(2, ch, 5, padding=2), nn.ReLU())
        self.seg = nn.Sequential(nn.Conv1d(ch, ch, 3, padding=1), nn.ReLU(), nn.Conv1d(ch, 2, 1))
        self.depth = nn.Sequential(nn.Conv1d(2, ch, 3, padding=1), nn.ReLU(), nn.Conv1d(ch, 1, 1))

    def forward(self, echo):
        return self.seg(self.stem(echo)), self.depth(echo).squeeze(1)


class Trainer:
    def __init__(self, hp):
        self.hp = hp
        self.net = TwoHeads(hp.channels)
        self.optim = torch.optim.SGD(self.net.parameters(), hp.lr, momentum=hp.momentum)
        self.scaler = torch.amp.GradScaler(hp.device, enabled=hp.use_amp, init_scale=2.0 ** 13)

    def iteration(self):
        echo, seg_gt, depth_gt = sweep(self.hp.batch, self.hp.points)
        self.optim.zero_grad(set_to_none=True)
        with torch.autocast(self.hp.device, dtype=torch.float16, enabled=self.hp.use_amp):
            seg_logits, depth_pred = self.net(echo)
            seg_term = F.cross_entropy(seg_logits.float(), seg_gt)
            depth_term = self.hp.depth_weight * F.smooth_l1_loss(depth_pred.float(), depth_gt)
        self.scaler.scale(seg_term).backward(retain_graph=True)
        depth_term.backward()
        self.scaler.step(self.optim)
        self.scaler.update()
        return seg_term.item(), depth_term.item()

    @torch.no_grad()
    def evaluate(self):
        echo, seg_gt, depth_gt = sweep(512, self.hp.points)
        seg, depth = self.net(echo)
        return (seg.argmax(1) == seg_gt).float().mean().item(), (depth - depth_gt).abs().mean().item()

    def run(self):
        for it in range(self.hp.iterations + 1):
            seg_term, depth_term = self.iteration()
            if it % 30 == 0:
                acc, mae = self.evaluate()
                print(f"it {it:04d} seg_loss={seg_term:.4f} depth_loss={depth_term:.4f} | eval seg_acc={acc:.3f} "
                      f"depth_mae={mae:.3f} | scale={self.scaler.get_scale():.0f}")


if __name__ == "__main__":
    Trainer(Hparams()).run()
