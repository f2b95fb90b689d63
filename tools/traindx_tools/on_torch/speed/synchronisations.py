"""Operations of one step that bring a value to the host, by the user's line."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from traindx_tools.on_variables.roots import is_users

_READS = {"aten::_local_scalar_dense": "a number", "aten::nonzero": "nonzero", "aten::equal": "equal",
          "aten::is_nonzero": "a condition", "aten::item": "item"}


class SynchronisationTrace(TorchDispatchMode):
    """While it is active, notes every read of a tensor's value; operations run as they would."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.lines: dict[tuple[str, int], tuple[str, int]] = {}
        self.on_device = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func._schema.name
        what = _READS.get(name) or ("copied to the host" if _leaves_device(name, args, result) else None)
        if what is not None:
            self._note(what, args)
        return result

    def _note(self, what: str, args: Any) -> None:
        frame: Any = sys._getframe(1)
        while frame is not None and not is_users(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None:
            return
        place = frame.f_code.co_filename, frame.f_lineno
        self.lines[place] = what, self.lines.get(place, ("", 0))[1] + 1
        self.on_device |= any(isinstance(a, torch.Tensor) and a.device.type not in ("cpu", "meta") for a in args)


def _leaves_device(name: str, args: Any, result: Any) -> bool:
    if name not in ("aten::_to_copy", "aten::copy_") or not args:
        return False
    target, source = (result, args[0]) if name == "aten::_to_copy" else (args[0], args[1])
    return bool(isinstance(source, torch.Tensor) and isinstance(target, torch.Tensor)
                and source.device.type not in ("cpu", "meta") and target.device.type == "cpu")
