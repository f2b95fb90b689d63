"""All small training runs with one planted origin of a non-finite value: the line is marked `# <- origin`.

They are used by the test beside this folder and by `benchmarks/nonfinite_origins.py`. Each file of them adds its own.
"""

from __future__ import annotations

import origins_around
import origins_backward
import origins_forward
from planting import PLANTED, Planted

FILES = (origins_forward, origins_backward, origins_around)
__all__ = ["FILES", "PLANTED", "Planted"]
