"""Bytes of a picture as pixels, whatever stands in them."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from PIL import Image

T = TypeVar("T")
MOST_PIXELS = 2**26
"""Pixels of a picture that is decoded; larger ones are left out."""


def decoded(data: bytes, formats: Sequence[str], look: Callable[[Image.Image], T | None]) -> T | None:
    """What `look` takes of a picture; None where it has more than MOST_PIXELS, or the bytes cannot be decoded.

    Raises ImportError without pillow.
    """
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(data), formats=tuple(formats)) as picture:
                return look(picture) if picture.width * picture.height <= MOST_PIXELS else None
    except Exception:  # noqa: BLE001 - a decoder meets a broken picture; damage is told by its header
        return None
