"""`Trainer(callbacks=[TraindxCallback()])`: the instruments of `traindx run` for one Lightning fit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from traindx_tools.errors import MissingExtra
from traindx_tools.on_torch.monitor import Monitor

if TYPE_CHECKING:
    Callback: Any = object
else:
    try:
        from lightning.pytorch import Callback
    except ImportError:
        try:
            from pytorch_lightning import Callback
        except ImportError as missing:
            raise MissingExtra("The Lightning callback", "lightning", "all") from missing


class TraindxCallback(Callback):  # type: ignore[misc]
    """A Monitor from the start of `fit` to its end, also where it ends with an error."""

    def __init__(self, out: str | Path | None = None, probes: tuple[str, ...] = ("always",)) -> None:
        super().__init__()
        self.monitor = Monitor(out=out, probes=probes)
        self._open = False

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Attaches the probes."""
        self.monitor.__enter__()
        self._open = True

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        """Takes them out again."""
        self._close(None)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Writes what the probes know of the error and takes them out again."""
        self._close(exception)

    def _close(self, error: BaseException | None) -> None:
        if self._open:
            self._open = False
            self.monitor.__exit__(type(error) if error is not None else None, error, None)
