import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader

from nuclei import NucleiSet
from unet import MiniUNet


def dice_bce(logits, mask):
    p = logits.sigmoid()
    inter = (p * mask).sum((1, 2, 3))
    dice = 1 - (2 * inter + 1) / (p.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)
    return torch.nn.functional.binary_cross_entropy_with_logits(logits, mask) + dice.mean()


@torch.no_grad()
def mean_iou(model, loader, acc):
    model.eval()
    inter = union = 0.0
    for image, mask in loader:
        pred = model(image) > 0
        pred, mask = acc.gather_for_metrics((pred, mask.bool()))
        inter += (pred & mask).sum().item()
        union += (pred | mask).sum().item()
    return inter / union


def main():
    set_seed(21)
    acc = Accelerator(cpu=True)
    train_dl = DataLoader(NucleiSet(160, seed=1, train=True), batch_size=10, shuffle=True)
    val_dl = DataLoader(NucleiSet(40, seed=2), batch_size=20)
    model = MiniUNet()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model, opt, train_dl, val_dl = acc.prepare(model, opt, train_dl, val_dl)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt.optimizer, max_lr=4e-3, total_steps=10 * len(train_dl))
    for epoch in range(10):
        model.train()
        total = 0.0
        for image, mask in train_dl:
            with acc.autocast():
                loss = dice_bce(model(image), mask)
            acc.backward(loss)
            opt.step()
            sched.step()
            opt.zero_grad()
            total += loss.item()
        acc.print(f"| {epoch + 1:>3} | loss {total / len(train_dl):.4f} | IoU val {mean_iou(model, val_dl, acc):.4f} | lr {sched.get_last_lr()[0]:.2e} |")


if __name__ == "__main__":
    main()
