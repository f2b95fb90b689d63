"""The torch probes by name: every `TorchProbe` with a name in a module of `on_torch/probes/`."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Sequence

from traindx_tools.live.notice import say
from traindx_tools.live.settings import ORIGIN
from traindx_tools.on_torch.probe import Scene, TorchProbe

ROOM = "traindx_tools.on_torch.probes"
ALWAYS, ALL = "always", "all"
"""Names that stand for every probe that is always on, and for all but those that trace or are on request."""
TRACERS = {ORIGIN: "nonfinite-origin"}
"""The probe that runs alone in a mode of its own."""


def known_probes() -> dict[str, type[TorchProbe]]:
    """Every probe by its name. A module that cannot be imported costs its own probes and one line."""
    found: dict[str, type[TorchProbe]] = {}
    for info in pkgutil.iter_modules(importlib.import_module(ROOM).__path__):
        for probe in _in_module(f"{ROOM}.{info.name}"):
            found[probe.name] = probe
    return dict(sorted(found.items()))


def _in_module(name: str) -> list[type[TorchProbe]]:
    try:
        module = importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 - an old torch may lack what one probe needs; the others go on
        say(f"the probes of {name} are off: {type(error).__name__}: {error}")
        return []
    classes = (c for _, c in inspect.getmembers(module, inspect.isclass))
    return [c for c in classes if issubclass(c, TorchProbe) and c.name and c.__module__ == name]


def chosen(names: Sequence[str], mode: str = "watch") -> list[type[TorchProbe]]:
    """The probes that these names stand for; names of another framework's probes stand for none here."""
    known = known_probes()
    if mode in TRACERS:
        return [known[TRACERS[mode]]]
    watching = {k: p for k, p in known.items() if k not in TRACERS.values()}
    wanted = set(names)
    return [p for k, p in watching.items() if k in wanted or (ALL in wanted and not p.on_request)
            or (ALWAYS in wanted and p.always_on)]


def probes_for(scene: Scene, names: Sequence[str], mode: str = "watch") -> list[TorchProbe]:
    """The probes that these names stand for, made for this scene."""
    return made_for(scene, chosen(names, mode))


def made_for(scene: Scene, kinds: Sequence[type[TorchProbe]]) -> list[TorchProbe]:
    """One probe of each kind. One that cannot be made costs itself and one line."""
    made = []
    for kind in kinds:
        try:
            made.append(kind(scene))
        except Exception as error:  # noqa: BLE001 - see above
            say(f"the probe {kind.name} is off: {type(error).__name__}: {error}")
    return made
