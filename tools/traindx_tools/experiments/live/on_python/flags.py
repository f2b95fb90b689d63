"""Flags that XLA reads once, put beside those of the program before JAX is imported."""

from __future__ import annotations

import os

from traindx_tools.experiments.live.intervening import Intervening

ASKED = "TRAINDX_XLA_FLAGS"


class XlaFlags(Intervening):
    """XLA_FLAGS keep what they hold, and get ours after it: the last one counts."""

    def attach(self) -> None:
        ours = os.environ.get(ASKED, "")
        now = os.environ.get("XLA_FLAGS", "")
        if ours and ours not in now:
            os.environ["XLA_FLAGS"] = f"{now} {ours}".strip()
