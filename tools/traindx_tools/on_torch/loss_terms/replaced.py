"""Whether a program has put functions of its own in place of torch's.

Under a TorchFunctionMode torch looks a Python function up by its name again (`torch.nn.functional.mse_loss`) and hands
what it finds to the mode: where a program has wrapped that function, its wrapper would run inside itself, twice.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from traindx_tools.on_variables.roots import is_users

_HOMES: tuple[tuple[str, Any], ...] = (
    ("torch.nn.functional", torch.nn.functional), ("torch.functional", torch.functional),
    ("torch.Tensor", torch.Tensor), ("torch", torch), ("torch.linalg", torch.linalg), ("torch.special", torch.special),
)
_KEPT = (str(Path(torch.__file__).parent), str(Path(__file__).parents[2]))
"""Folders of torch, and of the instruments, which pass on what they are given."""


def _callables() -> dict[tuple[str, str], object]:
    return {(home, name): value for home, owner in _HOMES for name, value in list(vars(owner).items())
            if callable(value) and not isinstance(value, type)}


def _looked_up_again() -> dict[tuple[str, str], object]:
    """Those that a mode is handed; of `torch` itself the operations alone: `torch.compile`, which Lightning wraps, or
    `torch.save` never come to one."""
    operations = {id(f) for functions in torch.overrides.get_overridable_functions().values() for f in functions}
    return {(home, name): value for (home, name), value in _callables().items()
            if home != "torch" or id(value) in operations}


_KNOWN = _looked_up_again()
"""As they were when the instruments came."""


def replaced_function() -> str | None:
    """The name of a function of torch that is the program's own by now, None where there is none."""
    for (home, name), value in _callables().items():
        known = _KNOWN.get((home, name))
        code = getattr(value, "__code__", None)
        own = code is None or not code.co_filename.startswith(_KEPT)
        if known is not None and own and (value is not known or (code is not None and is_users(code.co_filename))):
            return f"{home}.{name}"
    return None
