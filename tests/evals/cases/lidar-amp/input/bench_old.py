"""Throughput check from the fp32 days, not used any more."""
import time
import torch
from train import PointMLP, make_points

if __name__ == "__main__":
    x, _ = make_points(4096)
    m = PointMLP().eval()
    t = time.time()
    with torch.no_grad():
        for _ in range(50):
            m(x)
    print("points/s", 50 * 4096 / (time.time() - t))
