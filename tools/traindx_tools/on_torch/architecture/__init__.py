"""What a model is made of, and checks of it before a long run: independence, overfitting, determinism."""

from traindx_tools.on_torch.architecture.analysis import Architecture, analyze_architecture
from traindx_tools.on_torch.architecture.checks import (
    Difference,
    Overfit,
    check_batch_independence,
    check_determinism,
    overfit_one_batch,
)

__all__ = [
    "Architecture",
    "Difference",
    "Overfit",
    "analyze_architecture",
    "check_batch_independence",
    "check_determinism",
    "overfit_one_batch",
]
