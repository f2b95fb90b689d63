"""What the header of a wave file says, and whether its samples are there."""

from __future__ import annotations

import io
import wave

from traindx_tools.errors import UnreadableInput


def wave_header(data: bytes) -> dict[str, int]:
    """Rate in Hz, channels, bits and frames. `data`: the whole file. Raises UnreadableInput where it is not whole."""
    try:
        with wave.open(io.BytesIO(data)) as file:
            told = {
                "rate": file.getframerate(),
                "channels": file.getnchannels(),
                "bits": 8 * file.getsampwidth(),
                "frames": file.getnframes(),
            }
            size = told["frames"] * told["channels"] * file.getsampwidth()
            there = min(size, len(data) - 44)
    except (wave.Error, EOFError) as error:
        raise UnreadableInput(f"it is no wave file that can be read ({str(error) or 'it ends early'})") from None
    if there < size:
        raise UnreadableInput(f"its header claims {size:,} bytes of samples and {there:,} are there")
    return told
