"""Instruments that measure a training run: logs, code, data, weights, live processes, many ranks."""

from traindx_tools.errors import TraindxError
from traindx_tools.finding import Bearing, Finding, Location, Patch, Severity, Strength

__version__ = "0.1.0"
__all__ = ["Bearing", "Finding", "Location", "Patch", "Severity", "Strength", "TraindxError", "__version__"]
