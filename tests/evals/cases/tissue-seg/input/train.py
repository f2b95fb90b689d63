"""Sparse-label segmentation of stained tissue crops."""
import argparse
import torch
from torch import nn


def conv_block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.GroupNorm(4, cout), nn.SiLU())


class TinyUNet(nn.Module):
    def __init__(self, n_cls=4, ch=12):
        super().__init__()
        self.down1, self.down2 = conv_block(3, ch), conv_block(ch, 2 * ch)
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.dec = conv_block(3 * ch, ch)
        self.out = nn.Conv2d(ch, n_cls, 1)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(self.pool(a))
        return self.out(self.dec(torch.cat([a, self.up(b)], 1)))


class Slides:
    """Crops from annotated slides. Only parts of a slide carry labels (255 = unlabelled)."""

    def __init__(self, n, size, seed):
        g = torch.Generator().manual_seed(seed)
        palette = torch.rand(4, 3, generator=g)
        coarse = torch.randint(0, 4, (n, size // 8, size // 8), generator=g)
        y = coarse.repeat_interleave(8, 1).repeat_interleave(8, 2)
        self.x = palette[y].permute(0, 3, 1, 2) + 0.25 * torch.randn(n, 3, size, size, generator=g)
        painted = torch.rand(n, size // 8, size // 8, generator=g) < 0.12
        painted = painted.repeat_interleave(8, 1).repeat_interleave(8, 2)
        self.y = torch.where(painted, y, torch.full_like(y, 255))

    def epoch(self, bs, g):
        for idx in torch.randperm(len(self.x), generator=g).split(bs):
            yield self.x[idx], self.y[idx]


def masked_nll(logits, target, ignore=255):
    mask = (target != ignore).float()
    logp = logits.log_softmax(1)
    nll = -logp.gather(1, target.clamp(max=3).unsqueeze(1)).squeeze(1)
    return (nll * mask).sum() / mask.sum(), int(mask.sum())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--batch-size", type=int, default=2)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--log-every", type=int, default=5)
    args = ap.parse_args()
    torch.manual_seed(5)
    data = Slides(150, 32, seed=21)
    g = torch.Generator().manual_seed(3)
    net = TinyUNet()
    optim = torch.optim.AdamW(net.parameters(), lr=args.lr)
    iters = (150 + args.batch_size - 1) // args.batch_size
    for ep in range(args.epochs):
        for it, (x, y) in enumerate(data.epoch(args.batch_size, g), 1):
            nll, labelled = masked_nll(net(x), y)
            optim.zero_grad(set_to_none=True)
            nll.backward()
            gnorm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optim.step()
            if it % args.log_every == 0 or not torch.isfinite(nll) and ep == 0:
                print(f"epoch [{ep + 1}/{args.epochs}] iter [{it}/{iters}] nll={nll.item():.4f} "
                      f"gnorm={gnorm.item():.3f} labelled_px={labelled}")


if __name__ == "__main__":
    main()
