"""What the rules on train and eval mode judge: how a model with BatchNorm or dropout was called."""

from __future__ import annotations

from dataclasses import dataclass

from traindx_tools.finding import Location


@dataclass(frozen=True)
class ModeCourse:
    """One model that is trained and has layers which act otherwise in eval mode."""

    path: str
    layers: tuple[str, ...]
    """Such layers: BatchNorm, and dropout with a probability above 0."""
    batch_norms: int
    trained_in_train: int
    """Training calls (a backward pass followed) with all of these layers in train mode."""
    trained_in_eval: int
    last_in_eval: int
    """Training calls in a row, up to the last, with every one of them and the model itself in eval mode."""
    first_eval_step: int
    """Optimizer step at which that row began."""
    unmeasured: str | None
    """A BatchNorm that normalises by its initial statistics (mean 0, variance 1, nothing counted) while it trains."""
    evaluated_in_train: int
    """Calls without gradients, in runs of several with no backward pass between, with such a layer in train mode."""
    longest_run: int
    evaluated_in_eval: int
    step: int
    rank: int = 0

    def at(self, module: str | None = None, step: int | None = None) -> Location:
        """The model or a layer of it."""
        return Location(module=module or self.path, step=float(self.step if step is None else step), rank=self.rank)
