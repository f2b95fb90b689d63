"""Colours, fonts and text of the pictures. Okabe and Ito's palette: told apart by colour-blind eyes as well."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from traindx_tools.finding import Severity
from traindx_tools.unlinked import made, opened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, MUTED, GRID, PAPER = "#1b1f24", "#5b6570", "#e4e8ec", "#ffffff"
GROUPS = {"train": "#0072b2", "validation": "#d0408f", "test": "#009e73"}
CYCLE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a7a00", "#1b1f24")
DASHES = ("-", "--", "-.", ":")
BAD = "#d55e00"
SEVERITY = {
    Severity.CRITICAL: "#c0392b",
    Severity.HIGH: "#d98200",
    Severity.MEDIUM: "#7d5ba6",
    Severity.LOW: "#5b6570",
    Severity.INFO: "#8a949e",
}
WIDTH_INCHES = 10.0
DPI = 150

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")


def plain(text: str, most: int) -> str:
    """Text from a log as one bounded line that a legend shows as it stands."""
    line = _CONTROL.sub(" ", text).strip().lstrip("_") or "(unnamed)"
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def save(figure: Figure, out: Path) -> Path:
    """Writes the PNG; letters that the font lacks are drawn as boxes, which is no reason to warn."""
    made(out.parent)
    with warnings.catch_warnings(), opened(out, "wb") as file:
        warnings.simplefilter("ignore")
        figure.savefig(file, format="png", dpi=DPI, facecolor=PAPER)
    return out
