"""The devices of a training program: what it writes to besides files. No terminal is among them."""

from __future__ import annotations

import os

PLAIN = ("/dev/null", "/dev/zero", "/dev/full")
SHARED_MEMORY = "/dev/shm"
"""Where workers hand batches over."""
_OF_ACCELERATORS = ("nvidia", "dri", "kfd", "infiniband", "accel", "neuron", "dxg", "davinci")


def passed_on() -> list[str]:
    """Devices of accelerators and networks of this machine."""
    try:
        return [f"/dev/{name}" for name in sorted(os.listdir("/dev")) if name.startswith(_OF_ACCELERATORS)]
    except OSError:
        return []
