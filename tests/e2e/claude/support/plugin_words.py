"""What the model of the plugin's tests says and calls: a diagnosis of the example's run, and its edit."""

from __future__ import annotations

from pathlib import Path

from scripted_api import Use

OPEN = Use("Skill", {"skill": "traindx:ml-debug", "args": "the loss is NaN"})
DIAGNOSIS = """# Diagnosis (Gate 4)
## Symptom
The loss is NaN from step 1175 on.
## Root Cause
np.log(1.0 - prob) at train.py:46 reaches 0: EPS vanishes in float32 (E1, prob = 1.0).
## Why This Happens
1e-12 is below the resolution of float32 near 1.
## Proposed Fix
A (targeted): train.py:20: EPS = 1e-6. The loss stays finite. Verify: `python3 check.py`.
B (broader): train.py:40-50: work with logits. Verify: `python3 check.py`.
## What This Fix Will Change
Probabilities are clipped at 1e-6.
## What This Fix Will NOT Fix
A learning rate that is too high.
"""
EPS = "EPS = 1e-12"


def edit(work: Path, new: str = "EPS = 1e-6", old: str = EPS) -> Use:
    return Use("Edit", {"file_path": str(work / "train.py"), "old_string": old, "new_string": new,
                        "replace_all": False})


def bash(command: str) -> Use:
    return Use("Bash", {"command": command, "description": "run"})


def eps(work: Path) -> str:
    return (work / "train.py").read_text().split("\n")[19].split("#")[0].strip()
