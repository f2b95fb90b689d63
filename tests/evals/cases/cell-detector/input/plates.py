import torch

SIDE, GRID = 48, 6
CELL = SIDE // GRID


def plates(n, seed):
    """Images of bright rectangular cells; targets per image: x1, y1, w, h in pixels (annotation tool export)."""
    g = torch.Generator().manual_seed(seed)
    imgs = 0.15 * torch.randn(n, 1, SIDE, SIDE, generator=g)
    anns = []
    for i in range(n):
        spots = torch.randperm(9, generator=g)[: int(torch.randint(1, 4, (1,), generator=g))]
        rows = []
        for s in spots.tolist():
            w, h = torch.randint(6, 13, (2,), generator=g).tolist()
            x = (s % 3) * 16 + int(torch.randint(0, 16 - w + 1, (1,), generator=g))
            y = (s // 3) * 16 + int(torch.randint(0, 16 - h + 1, (1,), generator=g))
            imgs[i, 0, y : y + h, x : x + w] += 1.0
            rows.append([x, y, w, h])
        anns.append(torch.tensor(rows, dtype=torch.float32))
    return imgs, anns


def grid_targets(anns):
    obj = torch.zeros(len(anns), GRID, GRID)
    loc = torch.zeros(len(anns), GRID, GRID, 4)
    for i, a in enumerate(anns):
        for x, y, w, h in a.tolist():
            gx, gy = int((x + w / 2) // CELL), int((y + h / 2) // CELL)
            obj[i, gy, gx] = 1.0
            loc[i, gy, gx] = torch.tensor([(x + w / 2) / CELL - gx, (y + h / 2) / CELL - gy, w / SIDE, h / SIDE])
    return obj, loc
