"""Discrete codes: which codebooks a model has, how they are used, whether they move and whether revivals last."""

from traindx_tools.on_torch.codes.codebooks import Codebook, find_codebooks
from traindx_tools.on_torch.codes.usage import Usage, code_usage

__all__ = ["Codebook", "Usage", "code_usage", "find_codebooks"]
