import torch
import torch.nn as nn
from tqdm import tqdm

from boxes import average_precision, to_corners
from plates import CELL, GRID, SIDE, grid_targets, plates


class Detector(nn.Module):
    def __init__(self, c=24):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, c, 3, 2, 1), nn.BatchNorm2d(c), nn.ReLU(),
            nn.Conv2d(c, 2 * c, 3, 2, 1), nn.BatchNorm2d(2 * c), nn.ReLU(),
            nn.Conv2d(2 * c, 2 * c, 3, 2, 1), nn.BatchNorm2d(2 * c), nn.ReLU(),
            nn.Conv2d(2 * c, 2 * c, 3, 1, 1), nn.ReLU(), nn.Conv2d(2 * c, 5, 1),
        )

    def forward(self, x):
        y = self.body(x).permute(0, 2, 3, 1)
        return y[..., 0], y[..., 1:].sigmoid()


def detections(obj, loc, keep=0.3):
    gy, gx = torch.meshgrid(torch.arange(GRID), torch.arange(GRID), indexing="ij")
    out = []
    for o, l in zip(obj.sigmoid(), loc):
        centre = torch.stack([(l[..., 0] + gx) * CELL, (l[..., 1] + gy) * CELL], -1)
        box = torch.cat([centre, l[..., 2:] * SIDE], -1)
        m = o > keep
        out.append((o[m], to_corners(box[m])))
    return out


@torch.no_grad()
def evaluate(net, imgs, anns):
    net.eval()
    found = detections(*net(imgs))
    truth = [to_corners(a) for a in anns]
    return average_precision(found, truth)


def main():
    torch.manual_seed(6)
    imgs, anns = plates(800, 1)
    vimgs, vanns = plates(150, 2)
    obj, loc = grid_targets(anns)
    net = Detector()
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
    for ep in range(1, 13):
        net.train()
        so = sl = 0.0
        parts = torch.randperm(len(imgs)).split(32)
        for idx in tqdm(parts, desc=f"ep {ep}", ascii=True, mininterval=30, ncols=70):
            po, pl = net(imgs[idx])
            lo = nn.functional.binary_cross_entropy_with_logits(po, obj[idx], pos_weight=torch.tensor(4.0))
            m = obj[idx] > 0
            ll = nn.functional.smooth_l1_loss(pl[m], loc[idx][m], beta=0.1)
            opt.zero_grad()
            (lo + 5 * ll).backward()
            opt.step()
            so, sl = so + lo.item(), sl + ll.item()
        print(f"ep {ep}: obj {so / len(parts):.4f} box {sl / len(parts):.4f} AP50 {evaluate(net, vimgs, vanns):.4f}")


if __name__ == "__main__":
    main()
