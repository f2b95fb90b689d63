"""The probes' names are known without their framework: `traindx run` must not import torch before the command does."""

from __future__ import annotations

import subprocess
import sys

import pytest

from traindx_tools.live.probes import known_names

TELL = """
import sys
from traindx_tools.live.probes import known_names
known_names()
import traindx.commands.run, traindx_tools.live.runner
print([m for m in ("torch", "jax", "matplotlib") if m in sys.modules])
"""


def test_the_names_of_torch_probes_are_those_of_the_registry() -> None:
    pytest.importorskip("torch")
    from traindx_tools.on_torch.registry import known_probes

    kinds = known_probes()
    assert {(n, a) for n, _, a in known_names()} >= {(n, k.always_on) for n, k in kinds.items()}
    assert all(about for _, about, _ in known_names())


def test_no_framework_is_imported_for_them() -> None:
    done = subprocess.run([sys.executable, "-c", TELL], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
