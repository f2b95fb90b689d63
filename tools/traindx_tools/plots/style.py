"""Colours, fonts and text of the pictures. Okabe and Ito's palette: told apart by colour-blind eyes as well."""

from __future__ import annotations

import io
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from traindx_tools.errors import BadUsage
from traindx_tools.finding import Severity
from traindx_tools.unlinked import write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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
MOST_COLOURS = 8192
"""Of a picture that is drawn: lines, bands and the shades of their edges."""
PALETTE = 192
PNG = b"\x89PNG\r\n\x1a\n"

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")


def plain(text: str, most: int) -> str:
    """Text from a log as one bounded line that a legend shows as it stands."""
    line = _CONTROL.sub(" ", text).strip().lstrip("_") or "(unnamed)"
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def inches_of(cell: Axes) -> float:
    """How wide a panel is."""
    return float(cell.get_window_extent().width / cell.figure.dpi)


def save(figure: Figure, out: Path) -> Path:
    """Writes the PNG; letters that the font lacks are drawn as boxes, which is no reason to warn."""
    _no_other_file(out)
    drawn = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure.savefig(drawn, format="png", dpi=DPI, facecolor=PAPER)
    shows_values = any(axes.images for axes in figure.axes)
    return write(out, drawn.getvalue() if shows_values else _smaller(drawn.getvalue()))


def _no_other_file(out: Path) -> None:
    """Refuses to draw over what is no picture: a log or a script that was named by mistake would be lost."""
    if not out.is_file() or not out.stat().st_size:
        return
    with out.open("rb") as file:
        begins = file.read(len(PNG))
    if begins != PNG:
        raise BadUsage(f"{out} is there and is no PNG: it is not replaced. Name another file for the picture")


def _smaller(png: bytes) -> bytes:
    """The same picture from a palette, a third of its size: what is drawn has few colours and their edges.

    One with many (photographs of a data set) stays as it is.
    """
    from PIL import Image  # matplotlib needs it

    picture = Image.open(io.BytesIO(png)).convert("RGB")
    if picture.getcolors(MOST_COLOURS) is None:
        return png
    flat = picture.quantize(PALETTE, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    colours, paper = flat.getpalette() or [], flat.getpixel((0, 0))
    assert isinstance(paper, int), "a palette has numbers"
    colours[3 * paper:3 * paper + 3] = bytes.fromhex(PAPER[1:])  # an average of it and of its edges otherwise
    flat.putpalette(colours)
    packed = io.BytesIO()
    flat.save(packed, "PNG")
    return packed.getvalue()
