"""A clean process for each program."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("jax")
pytest.importorskip("optax")
sys.path.insert(0, str(Path(__file__).parent))

from traindx_tools.live import notice
from traindx_tools.live.session import close_session
from traindx_tools.on_jax.attachment import detach


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    notice._said.clear()
    yield
    close_session()
    detach()
