"""A clean process for each program."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))

import torch._dynamo.utils

from traindx_tools.live import notice
from traindx_tools.live.session import close_session
from traindx_tools.on_torch.attachment import detach
from traindx_tools.on_torch.speed import compilations


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    notice._said.clear()
    compilations._asked.clear()
    torch._dynamo.utils.counters.clear()
    yield
    close_session()
    detach()
