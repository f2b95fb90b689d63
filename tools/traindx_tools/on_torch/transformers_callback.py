"""`Trainer(callbacks=[TraindxCallback()])`: the instruments of `traindx run` in the Hugging Face Trainer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from traindx_tools.errors import MissingExtra
from traindx_tools.on_torch.monitor import Monitor

if TYPE_CHECKING:
    TrainerCallback: Any = object
else:
    try:
        from transformers import TrainerCallback
    except ImportError as missing:
        raise MissingExtra("The Trainer callback", "transformers", "all") from missing


class TraindxCallback(TrainerCallback):  # type: ignore[misc]
    """A Monitor from the first step of `train` to its end."""

    def __init__(self, out: str | Path | None = None, probes: tuple[str, ...] = ("always",)) -> None:
        super().__init__()
        self.monitor = Monitor(out=out, probes=probes)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Attaches the probes."""
        self.monitor.__enter__()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Takes them out again."""
        self.monitor.__exit__(None, None, None)
