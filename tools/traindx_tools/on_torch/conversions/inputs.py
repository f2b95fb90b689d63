"""Other forms of a batch that loaded weights may have been trained on: another scale, order of channels, ids by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch

from traindx_tools.on_torch.conversions.candidates import Candidate

INPUT = "input"
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
"""Mean and standard deviation of each channel (red, green, blue) of inputs in 0 to 1, for torchvision's weights."""
BYTE, SAMPLE = 255.0, 32768.0
"""The ranges of 8-bit pictures and of 16-bit sound."""


def inputs(given: Mapping[str, torch.Tensor]) -> Iterator[Candidate]:
    """Every other form of each input, by its name. Nothing is written."""
    for name, t in given.items():
        if t.is_floating_point():
            yield from _of_numbers(name, t)
        elif t.dtype in (torch.int64, torch.int32):
            for by in (1, -1):
                yield Candidate(f"the ids of {name} {by:+d}", INPUT, {name: (t + by).clamp(min=0)})


def _of_numbers(name: str, t: torch.Tensor) -> Iterator[Candidate]:
    forms = {f"{name} times {BYTE:g}": t * BYTE, f"{name} divided by {BYTE:g}": t / BYTE,
             f"{name} times {SAMPLE:g}": t * SAMPLE, f"{name} divided by {SAMPLE:g}": t / SAMPLE,
             f"{name} from 0..1 to -1..1": t * 2 - 1, f"{name} from -1..1 to 0..1": (t + 1) / 2,
             f"{name} of the other sign": -t, f"1 - {name}": 1 - t}
    for axis in (1, t.ndim - 1) if t.ndim > 2 else (1,) if t.ndim == 2 else ():
        if t.shape[axis] > 1:
            forms[f"{name} with axis {axis} reversed"] = t.flip(axis)
    if t.ndim >= 3:
        if t.shape[-1] == t.shape[-2]:
            forms[f"{name} with its last two axes exchanged"] = t.transpose(-1, -2)
        channels = tuple(range(2, t.ndim))
        mean, spread = t.mean((0, *channels), keepdim=True), t.std((0, *channels), keepdim=True).clamp(min=1e-6)
        forms[f"{name} standardised by channel"] = (t - mean) / spread
    if t.ndim == 4 and t.shape[1] == 3:
        mean, spread = (t.new_tensor(v).view(1, 3, 1, 1) for v in IMAGENET)
        forms[f"{name} normalised as ImageNet is"] = (t - mean) / spread
        forms[f"{name} without ImageNet's normalisation"] = t * spread + mean
    for said, form in forms.items():
        yield Candidate(said, INPUT, {name: form})
