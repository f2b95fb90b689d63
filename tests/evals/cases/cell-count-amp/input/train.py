"""Cell counting (regression) from microscopy patches with mixed precision."""
import logging
import sys
import torch
from torch import nn

logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname).1s %(name)s: %(message)s")
log = logging.getLogger("cells")
torch.manual_seed(6)
SIZE = 20


def patches(n):
    count = torch.randint(0, 9, (n,))
    img = 0.1 * torch.randn(n, 1, SIZE, SIZE)
    yy, xx = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    for k in range(8):
        cy, cx = torch.randint(2, SIZE - 2, (2, n, 1, 1))
        blob = torch.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / 3.0)
        img[:, 0] += blob * (k < count)[:, None, None]
    return img, count.float()


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2),
                                  nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
        self.fc = nn.Linear(96, 1)

    def forward(self, x):
        return self.fc(self.conv(x).flatten(1)).squeeze(1)


def validate(model, x, y):
    with torch.no_grad():
        return (model(x) - y).abs().mean().item()


def main(epochs=8, lr=0.02, clip=5.0):
    train, val = patches(1024), patches(256)
    model = Counter()
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 14)
    log.info("MAE of the constant 4: %.3f, untrained: %.3f", (val[1] - 4).abs().mean(), validate(model, *val))
    for epoch in range(epochs):
        running = 0.0
        for idx in torch.randperm(1024).split(64):
            opt.zero_grad(set_to_none=True)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                pred = model(train[0][idx])
            loss = nn.functional.smooth_l1_loss(pred.float(), train[1][idx])
            scaler.scale(loss).backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), clip)
            scaler.step(opt)
            scaler.update()
            running += loss.item() / 16
        log.info("epoch %d/%d loss %.4f last-norm %.3g scale %g val-MAE %.3f", epoch + 1, epochs, running, norm, scaler.get_scale(), validate(model, *val))


main()
