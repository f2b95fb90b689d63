"""Label images of some files hold values that are no class, along the borders of the classes alone.

They were made smaller or turned as pictures are, by interpolation, or stored with losses (JPEG): between class 0 and
class 7 stand 1 to 6, which are other classes or none. Resizing labels asks for the nearest neighbour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.label_images import BETWEEN, NEW, SHARE, LabelImages, judged, label_images
from traindx_tools.on_data.places import listed, percent, place, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="D148",
    name="between-classes",
    title="Label images hold values between their classes",
    severity=Severity.HIGH,
    sees="the values of label images, in areas and along borders, image by image",
    matters="Borders are labelled with classes that are not there; a loss may fail on an id that is no class.",
    alike=(
        "Soft masks, stored as probabilities or grey in all files.",
        "A border that is ignored (255), thin classes such as poles: one value, and not between its neighbours.",
        "Photographs: no value has an area.",
    ),
    confirm=("Count the distinct values of a named image and of another.", "Make the labels again, nearest neighbour."),
    thresholds={
        "values": Threshold(NEW, "distinct values", "between classes in one image"),
        "share": Threshold(SHARE, "share of its pixels", "that hold them"),
        "between": Threshold(BETWEEN, "share of those pixels", "that lie between two classes within two pixels"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each file, or folder of pictures, with such images."""
    for data in view.sets:
        for name in data.fields:
            found = [(s, f) for s in data.shards if name in s.columns
                     and (f := label_images(s.columns[name])) is not None]
            yield from _of_images(found, name)
        for shard in data.shards:
            for folder in dict.fromkeys(str(PurePath(shard.row_names[r]).parent) for r in shard.label_images):
                rows = [r for r in shard.label_images if str(PurePath(shard.row_names[r]).parent) == folder]
                seen = judged([shard.label_images[r].astype(np.int64) for r in rows])
                if seen is not None:
                    yield _finding(shard, "content", seen, [shard.row_names[r] for r in
                                                            np.array(rows)[seen.interpolated]], len(rows))


def _of_images(found: Sequence[tuple[Shard, tuple[Array, Array]]], name: str) -> Iterator[Finding]:
    every = [image for _, (images, _) in found for image in images]
    seen = judged(every)
    if seen is None:
        return
    at = 0
    for shard, (images, rows) in found:
        here = seen.interpolated[at : at + len(images)]
        at += len(images)
        if here.any():
            scale = 100 if shard.columns[name].values.dtype.kind == "f" else 1
            yield _finding(shard, name, seen, [shard.row(int(r)) for r in rows[here]], len(images), scale)


def _finding(
    shard: Shard, field: str, seen: LabelImages, images: Sequence[str], of: int, scale: int = 1
) -> Finding:
    classes, examples = ([f"{v / scale:g}" for v in values] for values in (seen.classes.tolist(), seen.examples))
    what = f"{len(images):,} of the {of:,} label images that were looked at in {short(shard)}"
    return RULE.finding(
        f"{what} hold values that are no class, between classes along their borders ({listed(examples)}; "
        f"{percent(seen.pixels)} of their pixels), and the others hold {listed(classes)} alone: they were resized by "
        f"interpolation or stored with losses; {listed(images)}",
        place(shard, field),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": field, "images": len(images), "of": of, "values": tuple(examples), "share": seen.pixels,
                  "kind": "interpolated", "shard": short(shard)},
    )
