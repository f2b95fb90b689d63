import torch
import torch.nn.functional as F


def outline_of(mask):
    return F.max_pool2d(mask, 3, 1, 1) - (1 - F.max_pool2d(1 - mask, 3, 1, 1))


def region(out, mask):
    return F.binary_cross_entropy_with_logits(out["region"], mask)


def overlap(out, mask):
    p = out["region"].sigmoid()
    inter = (p * mask).sum((1, 2, 3))
    return (1 - (2 * inter + 1) / (p.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)).mean()


def outline(out, mask):
    return F.binary_cross_entropy_with_logits(out["outline"], outline_of(mask), pos_weight=torch.tensor(3.0))


TERMS = {"region": region, "overlap": overlap, "outline": outline}


def total(out, mask, spec, epoch):
    parts = {}
    for name, fn in TERMS.items():
        on = epoch >= spec[name]["from_epoch"]
        parts[name] = spec[name]["weight"] * fn(out, mask) if on else torch.zeros(())
    return sum(parts.values()), {k: v.item() for k, v in parts.items()}
