import torch
import torch.nn as nn
import torch.nn.functional as F


class DiceTerm(nn.Module):
    def __init__(self, n_classes, smooth=1.0):
        super().__init__()
        self.n_classes = n_classes
        self.smooth = smooth

    def forward(self, logits, mask):
        probs = logits.softmax(1)
        target = torch.zeros_like(probs).scatter_(1, mask.unsqueeze(1), 1.0)
        inter = (probs * target).sum((0, 2, 3))
        union = (probs + target).sum((0, 2, 3))
        return 1.0 - ((2 * inter + self.smooth) / (union + self.smooth)).mean()


class SegCriterion(nn.Module):
    """Cross entropy plus a Dice term that is switched on after `dice_from` epochs."""

    def __init__(self, n_classes, void=255, dice_weight=0.5, dice_from=2):
        super().__init__()
        self.void = void
        self.dice = DiceTerm(n_classes)
        self.dice_weight = dice_weight
        self.dice_from = dice_from

    def forward(self, logits, mask, epoch):
        ce = F.cross_entropy(logits, mask, ignore_index=self.void)
        if epoch < self.dice_from:
            return ce, {"ce": ce.item()}
        d = self.dice(logits, mask)
        return ce + self.dice_weight * d, {"ce": ce.item(), "dice": d.item()}
