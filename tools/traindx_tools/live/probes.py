"""The names of the probes of every framework that is installed here, for `traindx run --list` and `--probe`."""

from __future__ import annotations

import importlib
import importlib.util

REGISTRIES = {"torch": "traindx_tools.on_torch.registry", "jax": "traindx_tools.on_jax.registry"}


def known_names() -> list[tuple[str, str, bool]]:
    """Name, what it does in one line, and whether it is always on."""
    rows = []
    for framework, registry in REGISTRIES.items():
        if importlib.util.find_spec(framework) is None or importlib.util.find_spec(registry) is None:
            continue
        for name, kind in importlib.import_module(registry).known_probes().items():
            about = (kind.__doc__ or "").strip().split("\n")[0]
            rows.append((f"{name}", about, bool(kind.always_on)))
    return rows
