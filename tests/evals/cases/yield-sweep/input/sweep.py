"""Small grid over the optimiser, as in the field trial note of May."""
import itertools
from settings import load
from train import fit

GRID = {"optim.lr": ["0.0005", "0.005", "0.05"], "optim.epochs": ["12", "20"], "model.dropout": ["0.0", "0.2"]}

if __name__ == "__main__":
    results = []
    for combo in itertools.product(*GRID.values()):
        pairs = [f"{k}={v}" for k, v in zip(GRID, combo)]
        print("sweep:", *pairs)
        results.append((fit(load("config.yaml", pairs), "   ->"), pairs))
    best = min(results)
    print("best:", f"{best[0]:.5f}", best[1])
