"""While operations are traced, `torch.compile` gives back what it was given: a fused kernel hides its operations."""

from __future__ import annotations

import functools
from typing import Any

import torch


class EagerCompile:
    """Replaces `torch.compile` and `Module.compile`; `asked` tells whether the program wanted compilation."""

    def __init__(self) -> None:
        self.asked = False
        self._before = torch.compile, torch.nn.Module.compile
        torch.compile = self._compile(torch.compile)
        torch.nn.Module.compile = self._module_compile()  # type: ignore[method-assign]

    def undo(self) -> None:
        """Compilation as it was."""
        torch.compile, torch.nn.Module.compile = self._before  # type: ignore[method-assign]

    def _compile(self, original: Any) -> Any:
        @functools.wraps(original)
        def eager(model: Any = None, **_: Any) -> Any:
            self.asked = True
            return model if model is not None else lambda function: function

        return eager

    def _module_compile(self) -> Any:
        def eager(_: torch.nn.Module, *__: Any, **___: Any) -> None:
            self.asked = True

        return eager
