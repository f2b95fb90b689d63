"""What JAX has compiled once for a test it loads the next time: most of these programs are compiled again and again.

It compiles them without optimisation and in the quickest way, a third of the time: they are
small, and run a few times each.
"""

from __future__ import annotations

import os
import sys
from importlib import metadata
from pathlib import Path

import pytest

QUICK = ("--xla_cpu_use_fusion_emitters=false", "--xla_cpu_parallel_codegen_split_count=1")
"""XLA ends the process at a flag that it does not know: they are for the release that they were tried with."""


def _flags() -> tuple[str, ...]:
    try:
        tried = metadata.version("jaxlib").startswith("0.10.")
    except metadata.PackageNotFoundError:
        return ()
    return ("--xla_backend_optimization_level=0", *(QUICK if tried else ()))


os.environ["XLA_FLAGS"] = " ".join((os.environ.get("XLA_FLAGS", ""), *_flags()))

MOST = 256 * 2**20
"""Bytes that stay; with a bound JAX locks the folder, and two workers can share it."""


@pytest.fixture(scope="session", autouse=True)
def _compiled_once(request: pytest.FixtureRequest) -> None:
    """The folder lies in pytest's own cache (`--cache-clear` empties it); programs that tests start have none."""
    jax, cache = sys.modules.get("jax"), getattr(request.config, "cache", None)
    if jax is not None and cache is not None:
        folder: Path = cache.mkdir("compiled-by-jax")
        for name, value in (("cache_dir", str(folder)), ("cache_max_size", MOST)):
            jax.config.update(f"jax_compilation_{name}", value)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
