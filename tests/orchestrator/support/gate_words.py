"""A diagnosis in Gate 4 form, as an agent shows it."""

DIAGNOSIS = """# Diagnosis (Gate 4)
## Symptom
The loss is NaN from step 1175 on.
## Root Cause
The logarithm at train.py:7 reaches 0: EPS vanishes in float32 (E1, p = 1.0 at step 1175).
## Why This Happens
1e-12 is below the resolution of float32 near 1, so that 1 - p + EPS is 0.
## Proposed Fix
A (targeted): train.py:3: EPS = 1e-6. The loss stays finite. Verify: `python train.py --steps 1300`.
B (broader): train.py:6-7 with a finite logarithm. Verify: `python -m pytest tests`.
change: tests/test_loss.py (new)
## What This Fix Will Change
Probabilities are clipped at 1e-6.
## What This Fix Will NOT Fix
A learning rate that is too high.
"""
