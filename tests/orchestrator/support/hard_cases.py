"""Runs that really failed, whose cause the engine does not know: what proves it lies in the data."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "numpy-lr" / "train.py"
RETURNED = "    return x.astype(np.float32), y"
SHUFFLED = "    order = rng.permutation(rows); x = x[order]"
FELL_OUT = "    x[rows // 5, 5] = np.nan"
CLIP = "    prob = np.clip(prob, EPS, 1.0 - EPS)"
SAFE_CLIP = "    prob = np.clip(prob, np.float32(1e-6), np.float32(1.0 - 1e-6))"

COUNT_NAN = """import numpy as np, train
rng = np.random.default_rng(train.SEED)
x, y = train.make_rows(rng, train.TRAIN_ROWS)
bad = np.argwhere(~np.isfinite(x))
print("readings that are not finite:", len(bad), "of", x.size, "first at", bad[0].tolist())
w = np.zeros(train.FEATURES, np.float32)
print("gradient with the row:", (x.T @ (0.5 - y))[5], "without:", (np.nan_to_num(x).T @ (0.5 - y))[5])
"""
MEASURE_CLIP = """import numpy as np, train
top = np.clip(np.float32([0.5, 1.0]), train.EPS, 1.0 - train.EPS)
print("largest after the clip", top.max(), "its distance from one", 1.0 - top.max())
with np.errstate(all="ignore"):
    print("loss of a sure and wrong answer", train.binary_cross_entropy(np.float32([1.0]), np.float32([0.0]))[0])
"""
COUNT_MOVED = """import numpy as np, train
rng = np.random.default_rng(train.SEED)
x, y = train.make_rows(rng, train.TRAIN_ROWS)
rule = np.linspace(1.5, -1.5, train.FEATURES)
print("labels that agree with the rule of their own row:", round(float(np.mean((x @ rule > 0) == (y > 0.5))), 3))
"""


def line_of(work: Path, text: str) -> int:
    """The number of the line with this text."""
    return (work / "train.py").read_text().split("\n").index(text) + 1


def make(work: Path, *changes: tuple[str, str], steps: int = 1500) -> Path:
    """The example with changes in its code, trained: its log lies beside it."""
    text = EXAMPLE.read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    work.mkdir(parents=True)
    (work / "train.py").write_text(text)
    ran = subprocess.run([sys.executable, "train.py", "--steps", str(steps)], cwd=work, capture_output=True, text=True,
                         check=True, timeout=100)
    (work / "log.txt").write_text(ran.stdout)
    return work


def wrong_engine(work: Path) -> Path:
    """A reading is not a number; beside it stands a clip that the engine holds to be the cause."""
    return make(work, (RETURNED, f"{FELL_OUT}\n{RETURNED}"))


def silent_shuffle(work: Path) -> Path:
    """Rows are put into another order than their labels: nothing that a log or a rule shows to be wrong."""
    return make(work, (RETURNED, f"{SHUFFLED}\n{RETURNED}"), (CLIP, SAFE_CLIP))


def proof(place: str, quote: str, claim: str, value: str = "", **more: Any) -> dict[str, Any]:
    """One item of evidence."""
    return {"claim": claim, "supports": True, "value": value, "place": place, "quote": quote, **more}
