import torch


def to_corners(b):
    """centre x, centre y, width, height -> x1, y1, x2, y2"""
    c, s = b[..., :2], b[..., 2:]
    return torch.cat([c - s / 2, c + s / 2], -1)


def pairwise_iou(a, b):
    lo = torch.maximum(a[:, None, :2], b[None, :, :2])
    hi = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    inter = (hi - lo).clamp(min=0).prod(-1)
    area = lambda q: (q[:, 2:] - q[:, :2]).clamp(min=0).prod(-1)
    return inter / (area(a)[:, None] + area(b)[None, :] - inter + 1e-9)


def average_precision(preds, truths, thr=0.5):
    """preds: per image (score, box) tensors, truths: per image boxes, corners."""
    rows, total = [], 0
    for (score, box), gt in zip(preds, truths):
        total += len(gt)
        used = set()
        if len(score) == 0:
            continue
        iou = pairwise_iou(box, gt)
        for k in score.argsort(descending=True).tolist():
            j = int(iou[k].argmax())
            ok = iou[k, j] >= thr and j not in used
            if ok:
                used.add(j)
            rows.append((score[k].item(), ok))
    rows.sort(key=lambda r: -r[0])
    tp = torch.tensor([r[1] for r in rows], dtype=torch.float32).cumsum(0)
    if len(tp) == 0:
        return 0.0
    prec = tp / torch.arange(1, len(tp) + 1)
    rec = tp / total
    return (prec * torch.diff(rec, prepend=torch.zeros(1))).sum().item()
