"""Which rank of a job this process is, from what launchers and the frameworks say."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

_VARIABLES = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "JAX_PROCESS_ID")
"""torchrun and accelerate, Slurm, Open MPI, MPICH, JAX."""


def rank_here(environment: Mapping[str, str] | None = None) -> int:
    """The rank, 0 where nothing says otherwise. `torch.distributed` knows best, then the launcher."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    told = os.environ if environment is None else environment
    numbers = (told[name] for name in _VARIABLES if told.get(name, "").isdigit())
    return int(next(numbers, 0))
