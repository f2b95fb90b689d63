"""`make demo`: a failing run is diagnosed, the gate shown, the approved fix heals it; the example stays as it is."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def digest(folder):
    return {p.relative_to(folder): hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.rglob("*") if p.is_file()
            and "__pycache__" not in p.parts}


@pytest.mark.slow
def test_the_demo_diagnoses_asks_fixes_and_verifies(tmp_path):
    before = digest(EXAMPLES)
    done = subprocess.run([sys.executable, str(EXAMPLES / "demo.py")], cwd=tmp_path, capture_output=True, text=True,
                          timeout=110)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    said = [done.stdout.index(word) for word in ("Cause found", "Evidence", "Diagnosis (Gate 4)", "Proposed Fix",
                                                 "Answer, prepared", "Verified by running it again", "\n  before  ")]
    assert said == sorted(said)
    assert done.stdout.count("Diagnosis (Gate 4)") == 1
    assert "val_loss nan" in done.stdout
    assert digest(EXAMPLES) == before
    assert list(tmp_path.iterdir()) == []
