"""Functions of a package replaced wherever its modules hold them, once it is imported."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from traindx_tools.experiments.live.intervening import Intervening
from traindx_tools.live.import_hook import after_import

Make = Callable[[Callable[..., Any]], Callable[..., Any]]


class OnPackage(Intervening):
    """A change to what a package's functions make. Most take hold while a function is traced: once, for all its calls.

    """

    package = "optax"

    def attach(self) -> None:
        self.ledger.unseen = f"{self.package} was not imported, and the change is made to what its functions give"
        after_import(self.package, lambda: self.guarded(self.imported))

    def imported(self) -> None:
        """The package is there."""
        raise NotImplementedError

    def replace(self, name: str, make: Make, package: str | None = None) -> None:
        """The function of this name, in the package and in those of its modules that took it over."""
        root = package or self.package
        original = getattr(sys.modules[root], name, None)
        if original is None:
            return
        ours = functools.wraps(original)(make(original))
        for module, holder in list(sys.modules.items()):
            if module == root or module.startswith(root + "."):
                for attribute, value in list(vars(holder).items()):
                    if value is original:
                        setattr(holder, attribute, ours)
                        self.patches.later(functools.partial(setattr, holder, attribute, original))
