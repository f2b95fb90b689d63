"""JAX compiles without optimisation in these tests, which compile many small programs once each; two devices."""

from __future__ import annotations

import os

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0"
os.environ["XLA_FLAGS"] += " --xla_force_host_platform_device_count=2"
