import numpy as np
import torch
from torch.utils.data import Dataset


class Clusters(Dataset):
    """Lidar clusters, stored by increasing number of returns so that a batch needs little padding."""

    def __init__(self, path, split, augment=False):
        z = np.load(path)
        keep = z["split"] == split
        self.points = z["points"][keep].astype(np.float32)
        self.count = z["count"][keep]
        self.label = z["label"][keep].astype(np.int64)
        self.augment = augment

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        pts = self.points[i, :self.count[i]]
        yaw = 0.0
        if self.augment:
            yaw = np.random.uniform(-np.pi, np.pi)
            c, s = np.cos(yaw), np.sin(yaw)
            rot = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]], dtype=np.float32)
            pts = pts @ rot.T * np.float32(np.random.uniform(0.9, 1.1))
            pts = pts + np.random.normal(0, 0.02, pts.shape).astype(np.float32)
            pts = pts[np.random.rand(len(pts)) > 0.15]
        return torch.from_numpy(pts), self.label[i], yaw


def collate(items):
    n = max(max(len(p) for p, _, _ in items), 1)
    x = torch.zeros(len(items), n, 3)
    mask = torch.zeros(len(items), n, dtype=torch.bool)
    for j, (p, _, _) in enumerate(items):
        x[j, :len(p)] = p
        mask[j, :len(p)] = True
    return x, mask, torch.tensor([y for _, y, _ in items]), torch.tensor([w for _, _, w in items])
