"""What checkpoints and other files of weights hold, read without executing anything of them."""

from traindx_tools.on_weights.examine import Examined, examine
from traindx_tools.on_weights.of_run import OfRun, is_weights, of_run

__all__ = ["Examined", "OfRun", "examine", "is_weights", "of_run"]
