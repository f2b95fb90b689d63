"""An adapter does not fit the model that it lies beside, or its own configuration.

An adapter's keys name modules of its base: `base_model.model.<module>.lora_A.weight`. What names no module, or one that
the configuration does not adapt, is left out on loading without a word, and the module goes on as the base has it.
Layers that are counted from one, and modules that the base calls otherwise, are told with the change of names that
makes them fit. The base is looked for in the folders beside the adapter; without it only the configuration is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_weights.adapter_base import Base, bases_of, of_checkpoint
from traindx_tools.on_weights.adapter_fit import Fit, fit, fits, offset, other_names
from traindx_tools.on_weights.adapter_keys import Adapted, adapted_modules, kind_of, layer_of
from traindx_tools.on_weights.adapter_settings import (
    asked_layers,
    asked_modules,
    asked_rank,
    is_asked,
    is_parameter,
    leaves_layers_out,
)
from traindx_tools.on_weights.adapters import configuration_of
from traindx_tools.on_weights.seen import Seen
from traindx_tools.rules import Rule, Threshold

_OURS, _SIBLINGS, _SHARE = 0.5, 4, 6

RULE = Rule(
    id="W146",
    name="adapter-base",
    title="An adapter does not fit its base or its configuration",
    severity=Severity.HIGH,
    sees="keys of an adapter against modules, layers and shapes of the base beside it, and against adapter_config.json",
    matters="Keys that name no adapted module are dropped on loading: these modules stay as the base has them.",
    alike=("layers_to_transform leaves layers out", "modules that are saved whole (modules_to_save)",
           "a base of another class of the same model: one prefix more or less"),
    confirm=("load it and print the missing and the unexpected keys",
             "list the modules of the base with the suffixes of target_modules"),
    thresholds={
        "ours": Threshold(_OURS, "of the modules", "must fit a checkpoint that no configuration names as the base"),
        "siblings": Threshold(_SIBLINGS, "layers", "that have a module, before one without an adapter is odd"),
        "share": Threshold(_SHARE, "layers with an adapter for each without", "else they are left out on purpose"),
    },
)
_WRAPPERS = ("module.", "_orig_mod.", "base_model.", "_fsdp_wrapped_module.", "_forward_module.")
"""What trainers put around a model: no class of a model is called so."""


def check(seen: Seen) -> Iterator[Finding]:
    """The file by itself, then beside the base."""
    config = configuration_of(seen.path)
    modules = adapted_modules(seen.part.tensors) if seen.main else {}
    modules = {m: one for m, one in modules.items() if not is_parameter(config, m)}
    if not config or not modules or config.get("peft_type", "LORA") != "LORA":
        return
    yield from _by_itself(seen, modules, config)
    found = _nearest(seen, modules, config)
    if found is not None:
        yield from _beside(seen, modules, found, config)


def _by_itself(seen: Seen, modules: Mapping[str, Adapted], config: Mapping[str, Any]) -> Iterator[Finding]:
    """Halves, ranks, and modules that the configuration does not adapt."""
    if halves := [m for m, one in modules.items() if one.half is not None]:
        yield _finding(seen, "half", halves, f"of {len(halves)} of {len(modules)} adapted modules there is one of the "
                       f"two matrices alone ({_listed(halves)}): they add nothing, or not what was trained")
    ranks = {m: (one.rank, r) for m, one in modules.items()
             if (r := asked_rank(config, m)) is not None and one.rank not in (None, r)}
    if ranks:
        one, (own, asked) = next(iter(ranks.items()))
        yield _finding(seen, "rank", list(ranks), f"{len(ranks)} of {len(modules)} modules have another rank than "
                       f"adapter_config.json gives them: {one} has {own}, and r is {asked}; they do not load")
    unasked = [m for m in modules if not is_asked(config, m)]
    if unasked:
        said = f"target_modules: {_listed(sorted(asked_modules(config)))}" if asked_modules(config) else (
            f"layers_to_transform: {_listed([str(i) for i in sorted(asked_layers(config))])}")
        yield _finding(seen, "unasked", unasked, f"{len(unasked)} of {len(modules)} adapted modules are none that "
                       f"adapter_config.json adapts ({said}): the keys of {_listed(unasked)} are dropped on loading")


def _nearest(seen: Seen, modules: Mapping[str, Adapted], config: Mapping[str, Any]) -> Fit | None:
    """The base that fits best; None where none is there that is this adapter's."""
    bases = bases_of(seen.path, config)
    if seen.other is not None and (beside := of_checkpoint(seen.other.checkpoint, seen.other.config, True)):
        bases = [beside]
    made = [(fit(modules, b), b) for b in bases]
    if not made:
        return None
    best, base = max(made, key=lambda one: len(one[0].at))
    return best if base.named or _is_ours(best, modules) else None


def _is_ours(found: Fit, modules: Mapping[str, Adapted]) -> bool:
    """Whether most modules fit, as they are called, with other numbers of layers, or by their names' beginnings."""
    own = sum(fits(modules[m], found.base.modules[b]) for m, b in found.at.items())
    return own >= _OURS * len(modules) or offset(found, modules) is not None


def _beside(seen: Seen, modules: Mapping[str, Adapted], found: Fit, config: Mapping[str, Any]) -> Iterator[Finding]:
    """Modules that the base lacks, that do not fit, and those of the base without an adapter."""
    if (shift := offset(found, modules)) is not None:
        lost = [m for m in modules if m in found.absent]
        yield _finding(seen, "layers", lost, f"layers are counted otherwise than in {_base(found.base)}; all fit with "
                       f"{shift}: {_listed(lost)} are not there and dropped, the others lie over other layers")
        return
    if found.prefix is not None and _wrong_prefix(found):
        yield _finding(seen, "names", list(found.at), f"{len(found.at)} of {len(modules)} modules name none of "
                       f"{_base(found.base)} and are dropped; they fit with {found.prefix} ({next(iter(found.at))})")
    yield from _absent(seen, modules, found)
    shapes = [m for m, b in found.at.items() if found.base.whole and not fits(modules[m], found.base.modules[b])
              and not _resized(modules[m], found.base.modules[b])]
    if shapes:
        one = shapes[0]
        yield _finding(seen, "shape", shapes, f"{len(shapes)} of {len(modules)} adapted modules do not fit "
                       f"{_base(found.base)}: {one} gives {modules[one].ends} (out, in) and the weight there is "
                       f"{found.base.modules[found.at[one]]}")
    yield from _without(seen, modules, found, config)


def _wrong_prefix(found: Fit) -> bool:
    """Whether no loader makes it good: one that wraps a model, or one name in the place of another.

    A model's class adds or takes its own prefix by itself; one of several parts (`text_config`) exchanges them.
    """
    old, new = (found.prefix.old, found.prefix.new) if found.prefix else ("", "")
    parts = any(k.endswith("_config") and isinstance(v, Mapping) for k, v in found.base.config.items())
    return old.startswith(_WRAPPERS) or bool(old and new and not parts)


def _absent(seen: Seen, modules: Mapping[str, Adapted], found: Fit) -> Iterator[Finding]:
    """Numbered modules that the base has under no name, and under another one. A head without a number may be new."""
    absent = [m for m in found.absent if layer_of(m) is not None and found.base.whole]
    if not absent:
        return
    meant = {k: c for k, c in other_names(found, modules).items() if c}
    layers = {i for b in found.base.modules if (i := layer_of(b)) is not None}
    beyond = [m for m in absent if layers and (layer_of(m) or 0) > max(layers)]
    known = [f"'{k}' as '{c[0]}'" for k, c in meant.items() if len(c) == 1]
    if known:
        why = f"; it has {', '.join(known[:3])}"
    elif meant:
        kind, several = next(iter(meant.items()))
        why = f"; of the shape of '{kind}' it has {', '.join(several[:4])}"
    else:
        why = f"; its last layer is {max(layers)}" if len(beyond) == len(absent) else ""
    renamed = not found.at and "model_type" in found.base.config  # a release may call all of a model otherwise
    yield _finding(seen, "names" if known else "absent", absent, f"{len(absent)} of {len(modules)} adapted modules are "
                   f"not in {_base(found.base)} and their keys are dropped on loading ({_listed(absent)}){why}",
                   Severity.MEDIUM if renamed else None, Bearing.SIGN if renamed else Bearing.CAUSE)


def _resized(one: Adapted, shape: tuple[int, ...] | None) -> bool:
    """Whether a table of words alone has another number of rows: a vocabulary that was extended first."""
    ends = one.ends
    return ends is not None and shape is not None and layer_of(one.module) is None and bool(set(ends) & set(shape[:2]))


def _without(seen: Seen, modules: Mapping[str, Adapted], found: Fit, config: Mapping[str, Any]) -> Iterator[Finding]:
    """Kinds of modules that are asked for and have no adapter at all, and single layers without one."""
    kinds = {kind_of(b) for b in found.at.values()}
    asked = asked_modules(config)
    for name in sorted(asked):
        of_base = [b for b in found.base.modules if f".{b}".endswith(f".{name}")]
        of_file = [m for m in modules if f".{m}".endswith(f".{name}")]
        if of_base and not of_file and not leaves_layers_out(config):
            yield _finding(seen, "asked", of_base, f"adapter_config.json adapts '{name}', which {_base(found.base)} "
                           f"has in {len(of_base)} places ({_listed(of_base)}), and the file has no adapter of it: "
                           "they begin anew")
    if found.absent or leaves_layers_out(config) or not asked or any("." in a for a in asked):
        return
    lost = [m for k in sorted(kinds) for m in _gaps(k, found)]
    if lost:
        yield _finding(seen, "sibling", lost, f"{_listed(lost)} of {_base(found.base)} have no adapter and the same "
                       "modules of all other layers have one; adapter_config.json leaves no layer out")


def _gaps(kind: str, found: Fit) -> Iterator[str]:
    """The modules of one kind and shape that have no adapter, where few have none. What W133 tells is left to it."""
    own = {layer_of(b): found.base.modules[b] for b in found.at.values() if kind_of(b) == kind}
    there = {layer_of(b): b for b, s in found.base.modules.items() if kind_of(b) == kind and s in own.values()}
    lost = [i for i in there if i is not None and i not in own]
    if None in there or len(own) < _SIBLINGS - 1 or len(lost) > max(1, len(own) // _SHARE):
        return
    head = kind.partition("*")[0]
    layers = {i for b in found.at.values() if b.startswith(head) and (i := layer_of(b)) is not None}
    for layer in lost:
        interior = layer not in layers and len(layers) >= _SHARE and min(layers) < layer < max(layers)
        if not interior:
            yield there[layer]


def _base(base: Base) -> str:
    return f"the base {'/'.join(PurePath(base.path).parts[-2:])}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _finding(seen: Seen, kind: str, modules: Sequence[str], statement: str, severity: Severity | None = None,
             bearing: Bearing = Bearing.CAUSE) -> Finding:
    first = next((n for n in seen.part.tensors if modules[0] in n), next(iter(seen.part.tensors)))
    return RULE.finding(f"{statement} ({seen.path})", seen.where(first), seen.path, bearing=bearing,
                        severity=severity, measured={"kind": kind, "name": modules[0], "modules": tuple(modules[:20]),
                                                     "count": len(modules)})
