"""What detectors print of an epoch: their losses under a header of short names, their scores a class a row.

    Epoch   gpu_mem       box       obj       cls    labels  img_size
      0/2     1.85G    0.1000    0.0600    0.0200       117       640: 100%|####| 8/8 [00:03<00:00,  2.34it/s]
             Class     Images     Labels          P          R     mAP@.5 mAP@.5:.95: 100%|####| 4/4 [00:01<00:00]
               all        128        929      0.400      0.500      0.450      0.300

The row "all" is the mean over the classes; the rows below it, one a class, are no metrics of the run.
"""

from __future__ import annotations

import re

from traindx_tools.on_logs.readers.numbers import value

_BAR = re.compile(r":?\s+\d+%(?:\|| ?[━╸╺─]{5}).*$")
_COUNTED = re.compile(r"\s*Class\s+Images\s+(?:Labels|Targets|Instances)\s+")
_COLUMN = re.compile(r"(?:(?P<part>[A-Z][a-z]+)\()?(?P<score>P|R|mAP@?\.?50?(?:[-:]\.?95)?|mAP@\.5:\.95)"
                     r"(?=[\s):]|$)\)?")
_PARTS = {"Box": "B", "Mask": "M", "Pose": "P"}
_PLAIN = {"P": "precision", "R": "recall"}
_TERMS = frozenset({"box", "obj", "cls", "dfl", "giou", "iou", "kpt", "seg", "angle", "lrm", "l1"})
_MEMORY = frozenset({"gpu_mem", "gpu-mem", "gpu_memory"})


def loss_columns(names: list[str]) -> list[str]:
    """A header's names, with "_loss" behind the terms of a detector's loss; unchanged under any other header."""
    low = [n.lower() for n in names]
    if "epoch" not in low or not _MEMORY.intersection(low):
        return names
    return [f"{n}_loss" if n.lower() in _TERMS else n for n in names]


def score_columns(text: str) -> list[str]:
    """The names of the scores that a row of classes holds behind its two counts; [] where the line heads none.

    They are those of Ultralytics' own results.csv: "metrics/mAP50-95(B)" for boxes, (M) for masks, (P) for poses.
    """
    head = _COUNTED.match(text)
    if head is None:
        return []
    names, part = [], "B"
    for found in _COLUMN.finditer(_BAR.sub("", text[head.end():])):
        part = _PARTS.get(found["part"] or "", part)
        names.append(f"metrics/{_score(found['score'])}({part})")
    return names


def _score(written: str) -> str:
    if written in _PLAIN:
        return _PLAIN[written]
    return "mAP50-95" if "95" in written else "mAP50"


def scores(text: str, names: list[str]) -> dict[str, float]:
    """The scores of the row "all" under a header; {} for any other line."""
    cells = text.split()
    if len(cells) != len(names) + 3 or cells[0] != "all":
        return {}
    read = [value(c) for c in cells[3:]]
    return {name: number for name, number in zip(names, read, strict=True) if number is not None}
