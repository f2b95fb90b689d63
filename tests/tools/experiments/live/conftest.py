"""A training in this process with a change applied, as the process of an experiment applies it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("torch")

import numpy as np
import torch

from traindx_tools.experiments.change import parse_change
from traindx_tools.experiments.interventions import check
from traindx_tools.experiments.live import attach
from traindx_tools.experiments.live.applied import applied_of
from traindx_tools.experiments.trace import Applied
from traindx_tools.live.session import close_session, open_session
from traindx_tools.live.settings import Settings
from traindx_tools.on_torch import attachment


class Told:
    """What the change said of itself; known after the `with` block."""

    applied = Applied()


Changed = Callable[[str], AbstractContextManager[Told]]


@pytest.fixture
def changed(tmp_path: Path) -> Iterator[Changed]:
    """`with changed("no-clipping") as told: train()`; then `told.applied`."""

    @contextmanager
    def with_change(text: str) -> Iterator[Told]:
        folder = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        change = check(parse_change(text))
        session = open_session(Settings(str(folder), (), options={"changes": [change.to_json()]}))
        for framework in ("python", "torch"):
            attach.attach(framework, session)
        attachment.attach(session)
        told = Told()
        torch.manual_seed(0)
        np.random.seed(0)
        try:
            yield told
        finally:
            close_session()
            attachment.detach()
            attach.detach()
        told.applied = applied_of(change, folder)

    torch.manual_seed(0)
    np.random.seed(0)
    yield with_change
    attachment.detach()
    attach.detach()
    close_session()


@pytest.fixture(scope="session")
def programs() -> ModuleType:
    """The trainings of `programs.py`."""
    spec = importlib.util.spec_from_file_location("programs_of_experiments", Path(__file__).with_name("programs.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
