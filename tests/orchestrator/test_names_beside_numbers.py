"""Files in the order of their names beside labels in the order of numbers: chosen, tried and proven without a hint."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

PROGRAM = """
import glob
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

class Scans(Dataset):
    def __init__(self, root, targets):
        self.files = sorted(glob.glob(f"{root}/*.npy"))
        self.targets = torch.from_numpy(np.load(targets))
    def __len__(self):
        return len(self.files)
    def __getitem__(self, i):
        return torch.from_numpy(np.load(self.files[i])), self.targets[i]

torch.manual_seed(0)
train, held = random_split(Scans("scans", "classes.npy"), [400, 120])
loader, test = DataLoader(train, batch_size=16, shuffle=True), DataLoader(held, batch_size=120)
model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.Adam(model.parameters(), 2e-3)
for epoch in range(8):
    total = 0.0
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        total += loss.item()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in test)
    print(f"epoch {epoch} loss {total / len(loader):.4f} val_acc {right / 120:.4f}", flush=True)
"""


def diagnosed(home: Path, labels: str) -> str:
    """What is named as the cause, "" where nothing is."""
    rng = np.random.default_rng(3)
    centres, classes = 1.5 * rng.normal(size=(10, 32)), rng.integers(0, 10, 520)
    (home / "scans").mkdir()
    for i, c in enumerate(classes):
        np.save(home / "scans" / f"scan{i + 1}.npy", (centres[c] + 0.6 * rng.normal(size=32)).astype(np.float32))
    by_text = sorted(range(520), key=lambda i: f"scan{i + 1}.npy")
    told = {"by number": classes, "by text": classes[by_text], "noise": rng.permutation(classes)}[labels]
    np.save(home / "classes.npy", told)
    (home / "train.py").write_text(PROGRAM)
    subprocess.run([sys.executable, "-m", "traindx", "diagnose", ".", "--symptom",
                    "validation accuracy stays at chance", "--run", f"{sys.executable} train.py", "--budget", "200"],
                   cwd=home, capture_output=True, timeout=900, check=False)
    found = json.loads(next((home / "scratch/debug").glob("diagnose-*/diagnosis.json")).read_text())
    return str(found["root_causes"][0]["issue"]) if found["status"] == "diagnosis_complete" else ""


@pytest.mark.slow
@pytest.mark.timeout(1000)
def test_labels_by_number_are_proven_at_the_line_that_sorts(tmp_path: Path) -> None:
    issue = diagnosed(tmp_path, "by number")
    assert "misaligned" in issue
    assert "names-by-number" in issue
    line = next(i for i, text in enumerate(PROGRAM.splitlines(), 1) if "sorted(" in text)
    assert f"train.py:{line}" in issue


@pytest.mark.slow
@pytest.mark.timeout(1000)
@pytest.mark.parametrize("labels", ["by text", "noise"])
def test_names_that_text_sorted_are_no_cause_by_themselves(tmp_path: Path, labels: str) -> None:
    """Labels in the same order, and labels that no order mends."""
    assert "names-by-number" not in diagnosed(tmp_path, labels)
