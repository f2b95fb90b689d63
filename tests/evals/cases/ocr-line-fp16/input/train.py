"""Character classifier for OCR lines, float16 autocast with dynamic loss scaling."""
import logging
import sys
import torch
from torch import nn

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(levelname)s %(message)s")
log = logging.getLogger()
torch.manual_seed(25)
GLYPHS = torch.randn(16, 1, 12, 12)


def chars(n):
    y = torch.randint(0, 16, (n,))
    return GLYPHS[y] + 2.5 * torch.randn(n, 1, 12, 12), y


class GlyphNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(144, 128)
        self.b = nn.Linear(128, 128)
        self.c = nn.Linear(128, 16)

    def forward(self, x):
        x = torch.relu(self.a(x.flatten(1)))
        return self.c(torch.relu(self.b(x)))


def main():
    train, val = chars(8000), chars(1000)
    model = GlyphNet()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 24, growth_interval=100)
    skipped = step = 0
    for epoch in range(3):
        model.train()
        for idx in torch.randperm(len(train[0])).split(64):
            opt.zero_grad(set_to_none=True)
            with torch.autocast("cpu", dtype=torch.float16):
                out = model(train[0][idx])
                loss = nn.functional.cross_entropy(out, train[1][idx])
            scaler.scale(loss).backward()
            scaler.unscale_(opt)
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            before = scaler.get_scale()
            scaler.step(opt)
            scaler.update()
            if scaler.get_scale() < before:
                skipped += 1
                log.warning("step %d grad_norm=%s, optimizer step skipped, loss scale %g -> %g", step, norm.item(), before, scaler.get_scale())
            elif step % 40 == 0:
                log.info("step %d loss %.4f grad_norm %.3f scale %g", step, loss.item(), norm.item(), scaler.get_scale())
            step += 1
        model.eval()
        with torch.no_grad():
            acc = (model(val[0]).argmax(1) == val[1]).float().mean().item()
        log.info("epoch %d val_acc %.4f skipped %d of %d", epoch, acc, skipped, step)


if __name__ == "__main__":
    main()
