"""A JAX training in this process with a change applied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

pytest.importorskip("jax")
pytest.importorskip("optax")

import optax  # noqa: F401 - the changes wait for its import

from traindx_tools.experiments.change import parse_change
from traindx_tools.experiments.interventions import check
from traindx_tools.experiments.live import attach
from traindx_tools.experiments.live.applied import applied_of
from traindx_tools.experiments.trace import Applied
from traindx_tools.live.session import close_session, open_session
from traindx_tools.live.settings import Settings
from traindx_tools.on_jax import attachment


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
        for framework in ("python", "jax"):
            attach.attach(framework, session)
        attachment.attach(session)
        told = Told()
        try:
            yield told
        finally:
            close_session()
            attachment.detach()
            attach.detach()
        told.applied = applied_of(change, folder)

    yield with_change
    attachment.detach()
    attach.detach()
    close_session()
