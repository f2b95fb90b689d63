"""What JAX has compiled once for a test it loads the next time: most of these programs are compiled again and again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

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
