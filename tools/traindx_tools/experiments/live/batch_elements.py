"""The parts of a batch: found by position or key, replaced in a copy of what holds them. For torch and NumPy arrays."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

LABELS = ("labels", "label", "targets", "target", "y", "labels_ids", "label_ids", "tgt", "mask", "masks")
"""Keys under which what is to be learned is commonly given, the likelier first."""
INPUTS = ("input_ids", "pixel_values", "inputs_embeds", "input_values", "input_features", "inputs", "input", "x",
          "images", "image", "features", "data", "src")
"""Keys under which what is learned from is commonly given."""


class NoElement(Exception):
    """The batch holds no such part; says what it holds."""


def is_array(value: Any) -> bool:
    """Whether it is a torch tensor, a NumPy or a JAX array."""
    return hasattr(value, "shape") and hasattr(value, "dtype") and hasattr(value, "ndim")


def fresh(value: Any) -> Any:
    """The same arrays in memory of their own, in containers of the same kind; all else as it is."""
    if is_array(value):
        if hasattr(value, "detach"):
            return value.detach().clone()
        return value.copy() if hasattr(value, "copy") else value
    return mapped(fresh, value)


def mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """A container of the same kind whose parts are changed; what is no container is returned as it is."""
    if isinstance(value, tuple):
        parts = [change(v) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, list):
        return [change(v) for v in value]
    if isinstance(value, MutableMapping):
        made = copy.copy(value)
        for key in list(value):
            made[key] = change(value[key])
        return made
    return value


def element_of(batch: Any, element: str | None, labels: bool) -> str:
    """The path of the part that is meant: `element` as told (`1`, `labels`, `0.image`), or the usual place.

    Without being told, labels are the last of a tuple of two and more, inputs its first; of a mapping the usual key.
    Raises NoElement.
    """
    if element is not None:
        found(batch, element)
        return element
    if is_array(batch) and not labels:
        return ""
    if isinstance(batch, (tuple, list)) and batch:
        if labels and len(batch) < 2:
            raise NoElement(f"the batch holds {parts(batch)} and no labels beside them")
        place = str(len(batch) - 1 if labels else 0)
        if is_array(found(batch, place)):
            return place
        inner = found(batch, place)
        if isinstance(inner, Mapping):
            return f"{place}.{element_of(inner, None, labels)}"
        raise NoElement(f"the batch holds {parts(batch)}; element=... says which is meant")
    if isinstance(batch, Mapping):
        for key in LABELS if labels else INPUTS:
            if key in batch and is_array(batch[key]):
                return key
    what = "labels" if labels else "inputs"
    raise NoElement(f"which of {parts(batch)} the {what} are is not known; element=... says it")


def found(batch: Any, path: str) -> Any:
    """The part at the path. Raises NoElement."""
    value = batch
    for step in path.split(".") if path else ():
        value = _inside(value, step, batch, path)
    return value


def _inside(value: Any, step: str, batch: Any, path: str) -> Any:
    if isinstance(value, Mapping) and step in value:
        return value[step]
    if isinstance(value, (tuple, list)) and step.lstrip("-").isdigit() and -len(value) <= int(step) < len(value):
        return value[int(step)]
    raise NoElement(f"the batch has no element {path!r}; it holds {parts(batch)}")


def replaced(batch: Any, path: str, new: Any) -> Any:
    """A copy of the containers with another part at the path."""
    if not path:
        return new
    step, _, rest = path.partition(".")
    if isinstance(batch, MutableMapping):
        made = copy.copy(batch)
        made[step] = replaced(batch[step], rest, new)
        return made
    place = int(step) % len(batch)
    held = [replaced(v, rest, new) if i == place else v for i, v in enumerate(batch)]
    if isinstance(batch, list):
        return held
    return type(batch)(*held) if hasattr(batch, "_fields") else type(batch)(held)


def parts(batch: Any) -> str:
    """What a batch holds, in words, bounded."""
    if isinstance(batch, Mapping):
        return "{" + ", ".join(f"{k}: {_short(v)}" for k, v in list(batch.items())[:12]) + "}"
    if isinstance(batch, (tuple, list)):
        return "(" + ", ".join(_short(v) for v in list(batch)[:8]) + ("" if len(batch) <= 8 else ", ...") + ")"
    return _short(batch)


def _short(value: Any) -> str:
    return f"{type(value).__name__}{tuple(value.shape)}" if is_array(value) else type(value).__name__
