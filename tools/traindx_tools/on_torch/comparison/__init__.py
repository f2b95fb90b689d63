"""Two models, modes, dtypes, backends or checkpoints on one batch: the first place where they part."""

from traindx_tools.on_torch.comparison.compare import Comparison, compare
from traindx_tools.on_torch.comparison.layers import Layer
from traindx_tools.on_torch.comparison.log_probs import LogitsDifference, check_log_prob_ratio, explain_logits
from traindx_tools.on_torch.comparison.pairs import (
    compare_checkpoints,
    compare_compiled,
    compare_dtypes,
    compare_modes,
)

__all__ = [
    "Comparison",
    "Layer",
    "LogitsDifference",
    "check_log_prob_ratio",
    "compare",
    "compare_checkpoints",
    "compare_compiled",
    "compare_dtypes",
    "compare_modes",
    "explain_logits",
]
