"""What a search for another form came to: read where torch is not installed, too."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traindx_tools.on_torch.conversions.candidates import Candidate

SHARE = 0.75
"""Of the loss as loaded, and of what others reach, that a conversion is below: changes of domain and temperature gain
less, and the others of a residual stack make up for a part of what a damaged block does."""


@dataclass(frozen=True)
class Searched:
    """What the first batch said. `loss`: as loaded; `others`: the least that conversions of other modules reach."""

    loss: float
    tried: int
    best: Candidate | None = None
    healed: float = math.nan
    others: float = math.nan
    seconds: float = 0.0
    left: bool = False
    """Time ended it."""
