"""Old helper: dump a scatter of the training points (not used by train.py)."""
import sys

import numpy as np

if __name__ == "__main__":
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    pts = np.load(sys.argv[1])
    plt.scatter(pts[:, 0], pts[:, 1], s=1)
    plt.axis("equal")
    plt.savefig(sys.argv[1].replace(".npy", ".png"))
