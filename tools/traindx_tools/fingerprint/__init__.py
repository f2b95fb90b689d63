"""Fingerprints: what a run was given, in numbers, so that a later one can be compared with it."""

from traindx_tools.fingerprint.comparing import Difference, compare
from traindx_tools.fingerprint.taking import Fingerprint, load, take

__all__ = ["Difference", "Fingerprint", "compare", "load", "take"]
