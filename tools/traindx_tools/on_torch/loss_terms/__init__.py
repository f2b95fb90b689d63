"""The terms of a loss: what was added up, with which weight, and whose gradients pull where."""

from traindx_tools.on_torch.loss_terms.expression import LossTrace, Term

__all__ = ["LossTrace", "Term"]
