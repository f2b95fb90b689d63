"""Two configuration files: one difference a key that was changed, added or removed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from traindx_tools.experiments.isolating.outcomes import Items
from traindx_tools.experiments.isolating.spaces.space import hashed
from traindx_tools.experiments.isolating.spaces.target import Target, target_of
from traindx_tools.experiments.isolating.spaces.tree_files import form_of, read_tree, written
from traindx_tools.experiments.isolating.spaces.trees import Difference, applied, differences
from traindx_tools.experiments.place import Prepared


@dataclass(frozen=True)
class Configuration:
    """See `spaces.space.Space`. The file at `target` holds the good settings with some keys of the bad ones."""

    good: Any
    bad: Any
    target: Target
    form: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, good: Path, bad: Path, command: str, workspace: Path, at: str | None = None) -> Configuration:
        """Reads both files. Raises UnreadableInput or BadUsage."""
        trees = read_tree(good), read_tree(bad)
        target = target_of(command, workspace, (good, bad), "config", at)
        return cls(*trees, target, form_of(Path(target.path) if at else bad))

    @cached_property
    def changes(self) -> tuple[Difference, ...]:
        """Each difference, in the order of the bad file."""
        return tuple(differences(self.good, self.bad))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """`optim.lr: 0.1 -> 1.0`."""
        return tuple(c.label for c in self.changes)

    @cached_property
    def identity(self) -> str:
        """Of both files' settings."""
        return hashed(["configuration", self.target.path, self.form, repr(self.good), repr(self.bad)])

    def prepared(self, part: Items) -> Prepared:
        """The file with these keys as in the bad one."""
        whole = len(part) == len(self.changes)
        tree = self.bad if whole else applied(self.good, [self.changes[i] for i in sorted(part)])
        return Prepared(self.target.command, files={self.target.path: written(tree, self.form)})
