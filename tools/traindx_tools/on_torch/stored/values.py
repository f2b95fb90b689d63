"""Values of a step as JSON: numbers, names of dtypes and operations, and numbers of tensors; no code, no pickle.

Each tensor is written once, with its dtype, shape and strides, since results depend on how memory is laid out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from traindx_tools.experiments.replaying.trying import NotReplayable
from traindx_tools.live.step_file import Bytes, Stored
from traindx_tools.on_torch.snapshot.tape import Given, Made
from traindx_tools.on_torch.stored.modules import NotFound, Parameters

TAG = "$"
_NAMED = (torch.dtype, torch.layout, torch.memory_format)
SPARE = 4
"""Times its own size that the memory of a tensor with gaps may have; beyond it is laid out without gaps."""


class Writer:
    """Collects what a file holds."""

    def __init__(self, parameters: Parameters, modules: Sequence[torch.nn.Module] = ()) -> None:
        self._parameters, self._modules = parameters, {id(m): i for i, m in enumerate(modules)}
        self.tensors: list[torch.Tensor] = []
        self.table: list[dict[str, Any]] = []
        self._numbers: dict[int, int] = {}

    def tensor(self, tensor: torch.Tensor) -> int:
        """Its number. Raises NotReplayable for one that is no plain block of numbers."""
        if id(tensor) not in self._numbers:
            if tensor.layout is not torch.strided or tensor.is_quantized or tensor.device.type == "meta":
                raise NotReplayable(f"a {str(tensor.layout).removeprefix('torch.')} tensor cannot be kept")
            if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
                raise NotReplayable(f"a tensor of the kind {type(tensor).__name__} cannot be kept")
            self._numbers[id(tensor)] = len(self.tensors)
            self.tensors.append(tensor)
            self.table.append({"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape),
                               "stride": list(tensor.stride()), "device": str(tensor.device),
                               "gradient": tensor.is_leaf and tensor.requires_grad})
        return self._numbers[id(tensor)]

    @property
    def sizes(self) -> list[int]:
        """Bytes of each tensor."""
        return [t.numel() * t.element_size() for t in self.tensors]

    def bytes_of(self, number: int) -> Bytes:
        """The values of a tensor, in the order of its indices."""
        plain = self.tensors[number].detach().resolve_conj().resolve_neg().cpu().contiguous().reshape(-1)
        found: Bytes = plain.view(torch.uint8).numpy() if plain.numel() else np.empty(0, np.uint8)
        return found

    def parameter(self, tensor: torch.Tensor) -> list[Any]:
        """Its name. Raises NotReplayable."""
        name = self._parameters.name(tensor)
        if name is None:
            raise NotReplayable("it has parameters that no called module and no optimizer holds")
        return name

    def value(self, value: Any, *, lenient: bool = False) -> Any:
        """The value in JSON. `lenient`: what cannot be kept is left out. Raises NotReplayable."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {TAG: "float", "v": str(value)}
        plain = self._plain(value)
        if plain is not None:
            return plain
        if type(value) in (list, tuple, torch.Size):
            kind = "list" if type(value) is list else "tuple" if type(value) is tuple else "size"
            return {TAG: kind, "v": [self.value(v, lenient=lenient) for v in value]}
        if type(value) is dict:
            return {TAG: "dict", "v": [[self.value(k, lenient=lenient), self.value(v, lenient=lenient)]
                                       for k, v in value.items()]}
        if lenient:
            return {TAG: "left out"}
        raise NotReplayable(f"it was given a {type(value).__module__}.{type(value).__name__}, which is no number, "
                            "tensor, list or dict of these")

    def _plain(self, value: Any) -> dict[str, Any] | None:
        if isinstance(value, Made):
            return {TAG: "made", "v": value.slot}
        if isinstance(value, Given):
            return self._given(value.tensor)
        if isinstance(value, torch.Tensor):
            return {TAG: "tensor", "v": self.tensor(value)}
        if isinstance(value, _NAMED):
            return {TAG: "torch", "v": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {TAG: "device", "v": str(value)}
        if isinstance(value, slice):
            return {TAG: "slice", "v": [value.start, value.stop, value.step]}
        if value is Ellipsis:
            return {TAG: "ellipsis"}
        if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biuf":
            return {TAG: "numpy", "dtype": value.dtype.str, "v": self.tensor(torch.from_numpy(
                np.atleast_1d(np.ascontiguousarray(value)).view(np.uint8).reshape(-1).copy())),
                "shape": list(np.shape(value))}
        if isinstance(value, torch.nn.Module) and id(value) in self._modules:
            return {TAG: "module", "v": self._modules[id(value)]}
        return None

    def _given(self, tensor: torch.Tensor) -> dict[str, Any]:
        name = self._parameters.name(tensor)
        return {TAG: "given", "v": self.tensor(tensor)} if name is None else {TAG: "parameter", "v": name}


class Reader:
    """The values of a file in this process."""

    def __init__(self, stored: Stored, parameters: Parameters, modules: Sequence[torch.nn.Module]) -> None:
        self._stored, self._parameters, self._modules = stored, parameters, modules
        self._tensors: dict[int, torch.Tensor] = {}
        self._givens: dict[int, Given] = {}

    def tensor(self, number: int) -> torch.Tensor:
        """One tensor, the same each time."""
        if number not in self._tensors:
            self._tensors[number] = _tensor(self._stored.told["tensors"][number], self._stored.arrays(number))
        return self._tensors[number]

    def parameter(self, told: Sequence[Any]) -> torch.Tensor:
        """The parameter of this process. Raises NotFound."""
        return self._parameters.find(told)

    def given(self, tensor: torch.Tensor) -> Given:
        """What stands for a tensor, the same each time."""
        if id(tensor) not in self._givens:
            self._givens[id(tensor)] = Given(tensor, tensor._version)
        return self._givens[id(tensor)]

    def value(self, told: Any) -> Any:
        """The value. Raises NotFound, KeyError and ValueError on what is none."""
        if not isinstance(told, Mapping):
            return told
        kind, inner = told[TAG], told.get("v")
        if kind in ("list", "tuple", "size"):
            made = [self.value(v) for v in inner or ()]
            return made if kind == "list" else tuple(made) if kind == "tuple" else torch.Size(made)
        if kind == "dict":
            return {self.value(k): self.value(v) for k, v in inner or ()}
        if kind == "float":
            return float(str(inner))
        if kind == "ellipsis":
            return Ellipsis
        if kind == "left out":
            return None
        return self._special(kind, inner, told)

    def _special(self, kind: str, inner: Any, told: Mapping[str, Any]) -> Any:
        if kind == "made":
            return Made(int(inner))
        if kind == "given":
            return self.given(self.tensor(int(inner)))
        if kind == "parameter":
            return self.given(self.parameter(inner))
        if kind == "tensor":
            return self.tensor(int(inner))
        if kind == "torch":
            found = getattr(torch, str(inner))
            if not isinstance(found, _NAMED):
                raise ValueError(f"torch.{inner} is no dtype")
            return found
        if kind == "device":
            return device_here(str(inner))
        if kind == "slice":
            return slice(*inner)
        if kind == "numpy":
            values = self.tensor(int(inner)).numpy().view(np.dtype(str(told["dtype"]))).reshape(told["shape"])
            return values if told["shape"] else values[()]
        if kind == "module":
            return self._modules[int(inner)]
        raise NotFound(f"the file holds a {kind!r}, which is not known here")


def device_here(name: str) -> torch.device:
    """The device, or the CPU where this process has none of the kind."""
    device = torch.device(name)
    if device.type == "cpu" or (device.type == "cuda" and torch.cuda.is_available()) or (
            device.type == "mps" and torch.backends.mps.is_available()):
        return device
    return torch.device("cpu")


def _tensor(about: Mapping[str, Any], values: Bytes) -> torch.Tensor:
    dtype = getattr(torch, str(about["dtype"]))
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"torch.{about['dtype']} is no dtype")
    shape, stride = [int(n) for n in about["shape"]], [int(n) for n in about["stride"]]
    flat = torch.from_numpy(np.require(values, requirements=["W"])).view(dtype) if values.size else torch.empty(
        0, dtype=dtype)
    made = _laid_out(flat.reshape(shape), stride).to(device_here(str(about["device"])))
    return made.requires_grad_() if about.get("gradient") else made


def _laid_out(values: torch.Tensor, stride: list[int]) -> torch.Tensor:
    """The same values with these strides, where that takes little more memory."""
    if list(values.stride()) == stride or not values.numel():
        return values
    whole = [1 if s == 0 else n for n, s in zip(values.shape, stride, strict=True)]
    first = values[tuple(slice(0, n) for n in whole)]
    extent = 1 + sum((n - 1) * s for n, s in zip(whole, stride, strict=True))
    dense = torch.empty_strided(whole, stride, dtype=values.dtype) if extent <= SPARE * first.numel() else None
    if dense is None or _overlaps(whole, stride):
        return values
    with torch.no_grad():
        return dense.copy_(first).expand(values.shape)


def _overlaps(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether two indices may name one place."""
    reach = 0
    for size, step in sorted(((n, s) for n, s in zip(shape, stride, strict=True) if n > 1), key=lambda p: p[1]):
        if step <= reach:
            return True
        reach += (size - 1) * step
    return False
