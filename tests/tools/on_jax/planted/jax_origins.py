"""All small JAX functions with one planted origin of a non-finite value: the line is marked `# <- origin`.

They are used by the test beside this folder and by `benchmarks/jax_origins.py`. Each gives a function and its
arguments; `op` is the primitive that is to be named, `path` what its path must hold. Each file of them adds its own.
"""

from __future__ import annotations

import jax_origins_gradients
import jax_origins_loops
import jax_origins_values
from jax_planting import PLANTED, Planted

FILES = (jax_origins_values, jax_origins_gradients, jax_origins_loops)
__all__ = ["FILES", "PLANTED", "Planted"]
