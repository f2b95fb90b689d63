"""Label images of some files hold values that are no class, along the borders of the classes alone.

They were made smaller or turned as pictures are, by interpolation, or stored with losses (JPEG): between class 0 and
class 7 stand 1 to 6, which are other classes or none. Resizing labels asks for the nearest neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.between_neighbours import FEWEST, GAP, OddImages, OddPart, odd_images, odd_part
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.cuts import Cut, cuts_of, in_two
from traindx_tools.on_data.label_images import BETWEEN, NEW, SHARE, LabelImages, judged, label_images
from traindx_tools.on_data.origins import groups_of, in_common
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
        group = tuple(s for s in data.shards if s.columns and s.rows)
        for name in data.fields:
            found = [(s, f) for s in group if name in s.columns and (f := _images(s.columns[name])) is not None]
            yield from _first(_of_images, _of_part_in, _of_borders, found=found, name=name, labels=data.labels)
        for shard in data.shards:
            for folder in dict.fromkeys(str(PurePath(shard.row_names[r]).parent) for r in shard.label_images):
                yield from _of_folder(view, shard, folder)
    yield from _of_folders(view)


_Found = Sequence[tuple[Shard, tuple[Sequence[Array], Array]]]
"""Of each file the images that are looked at and their rows."""


def _first(*looks: Callable[[_Found, str, Sequence[str]], Iterator[Finding]], found: _Found, name: str,
           labels: Sequence[str]) -> list[Finding]:
    """What the first way of looking finds that finds anything."""
    return next((told for look in looks if (told := list(look(found, name, labels)))), [])


def _images(column: Column) -> tuple[Sequence[Array], Array] | None:
    """The label images of a field of arrays, or of one that holds pictures."""
    if column.label_images:
        rows = sorted(column.label_images)
        return [column.label_images[r].astype(np.int64) for r in rows], np.array(rows)
    found = label_images(column)
    return (list(found[0]), found[1]) if found is not None else None


def _of_folder(view: View, shard: Shard, folder: str) -> Iterator[Finding]:
    rows = [r for r in shard.label_images if str(PurePath(shard.row_names[r]).parent) == folder]
    names = [shard.row_names[r] for r in rows]
    images = [shard.label_images[r].astype(np.int64) for r in rows]
    groups = dict(groups_of(names, view))
    seen = judged(images)
    if seen is not None:
        common = in_common(seen.interpolated, groups, view.comparisons)
        marked = [n for n, m in zip(names, seen.interpolated, strict=True) if m]
        yield _finding(shard, "content", seen, marked, len(rows), common=common[0] if common else "")
        return
    cuts = [Cut(by, tuple(str(k) for k in kinds), (np.unique(values, return_inverse=True)[1].reshape(-1),), True)
            for by, values in groups.items() if 2 <= len(kinds := np.unique(values)) <= len(rows) // 8]
    odd = odd_part(images, cuts)
    if odd is not None:
        first = next(n for n, m in zip(names, odd.cut.member[0], strict=True) if m == odd.part)
        yield _of_part(shard, "content", odd, f"those with {odd.cut.by} {odd.cut.names[odd.part]}", first, len(images))
        return
    slow = odd_images(images)
    if slow is not None:
        common = in_common(slow.marks, groups, view.comparisons)
        marked = [n for n, m in zip(names, slow.marks, strict=True) if m]
        yield _slow(shard, "content", slow, marked, common[0] if common else "")


def _of_folders(view: View) -> Iterator[Finding]:
    """Folders of one name, such as `train/mask` and `val/mask`, of which one is so throughout and another is not."""
    places: dict[tuple[str, str], list[tuple[Shard, int]]] = {}
    for shard in (s for d in view.sets for s in d.shards):
        for row in shard.label_images:
            path = PurePath(shard.row_names[row]).parent
            folder = path.as_posix() if len(path.parts) > 1 else (PurePath(shard.name) / path).as_posix()
            places.setdefault((PurePath(folder).name, folder), []).append((shard, row))
    for name in dict.fromkeys(n for n, _ in places):
        folders = [(f, rows) for (n, f), rows in places.items() if n == name and len(rows) >= 2 * FEWEST]
        if len(folders) < 2:
            continue
        images = [s.label_images[r].astype(np.int64) for _, rows in folders for s, r in rows]
        of = np.repeat(np.arange(len(folders)), [len(rows) for _, rows in folders])
        seen = odd_images(images, of)
        if seen is None:
            continue
        ends = np.cumsum([len(rows) for _, rows in folders])
        for k, (folder, rows) in enumerate(folders):
            marks = seen.marks[ends[k] - len(rows): ends[k]]
            if marks.sum() >= 2 * FEWEST:
                shard = rows[int(np.argmax(marks))][0]
                names = [s.row_names[r] for (s, r), m in zip(rows, marks, strict=True) if m]
                yield _slow(shard, "content", seen, names, f"all in {folder}")


def _cuts(found: _Found, name: str, labels: Sequence[str]) -> list[Cut]:
    """The parts of the images that were looked at."""
    shards = [s for s, _ in found]
    cuts = [c for c in (*cuts_of(shards, labels), *in_two(shards)) if c.by != name]
    return [replace(c, member=(np.concatenate([m[rows] for m, (_, (_, rows)) in zip(c.member, found, strict=True)]),))
            for c in cuts]


def _of_images(found: _Found, name: str, labels: Sequence[str]) -> Iterator[Finding]:
    every = [image for _, (images, _) in found for image in images]
    seen = judged(every)
    if seen is None:
        return
    groups = {c.by: np.array([c.names[m] if m >= 0 else "" for m in c.member[0]])
              for c in _cuts(found, name, labels) if c.by}
    common = in_common(seen.interpolated, groups, 1) if groups else None
    at = 0
    for shard, (images, rows) in found:
        here = seen.interpolated[at : at + len(images)]
        at += len(images)
        if here.any():
            scale = 100 if shard.columns[name].values.dtype.kind == "f" else 1
            yield _finding(shard, name, seen, [shard.row(int(r)) for r in rows[here]], len(images), scale,
                           common[0] if common else "")


def _of_borders(found: _Found, name: str, labels: Sequence[str]) -> Iterator[Finding]:
    every = [image for _, (images, _) in found for image in images]
    whole = [s.columns[name].values.dtype.kind != "f" for s, _ in found]
    of = np.repeat(np.arange(len(found)), [len(images) for _, (images, _) in found])
    seen = odd_images(every, of) if all(whole) and len(every) >= 2 * FEWEST else None
    if seen is None:
        return
    at = 0
    for shard, (images, rows) in found:
        here = seen.marks[at : at + len(images)]
        at += len(images)
        if here.any():
            yield _slow(shard, name, seen, [shard.row(int(r)) for r in rows[here]], "")


def _of_part_in(found: _Found, name: str, labels: Sequence[str]) -> Iterator[Finding]:
    every = [image for _, (images, _) in found for image in images]
    if len(every) < 3 * FEWEST or any(s.columns[name].values.dtype.kind == "f" for s, _ in found):
        return
    odd = odd_part(every, _cuts(found, name, labels))
    if odd is not None:
        at = int(np.argmax(odd.cut.member[0] == odd.part))
        ends = np.cumsum([len(images) for _, (images, _) in found])
        which = int(np.searchsorted(ends, at, side="right"))
        shard, (images, rows) = found[which]
        first = shard.row(int(rows[at - (int(ends[which]) - len(images))]))
        yield _of_part(shard, name, odd, odd.cut.told(odd.part), first, len(every))


def _slow(shard: Shard, field: str, seen: OddImages, images: Sequence[str], common: str) -> Finding:
    (low, high), values = seen.between
    field = field.removesuffix(".width")
    return RULE.finding(
        f"{field} of {short(shard)}: in {len(images):,} of the {seen.looked_at:,} label images that were looked at "
        f"nearly every border between classes that are {GAP} and more apart passes through values between them "
        f"({values} values between {low} and {high} alone), where in all others one class stands beside the other: "
        f"these were resized by interpolation, and what stands along borders is no class; "
        f"{f'{common}: ' if common else ''}{listed(images)}",
        place(shard, field),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": field, "images": len(images), "of": seen.looked_at, "common": common,
                  "kind": "interpolated", "shard": short(shard), "rows": tuple(images[:20])},
    )


def _of_part(shard: Shard, field: str, odd: OddPart, where: str, first: str, of: int) -> Finding:
    (low, high), values = odd.between
    count = int((odd.cut.member[0] == odd.part).sum())
    field = field.removesuffix(".width")
    return RULE.finding(
        f"{field} of {where} ({count:,} of {of:,} label images that were looked at): {percent(odd.inside)} of the "
        f"pixels lie between the classes on both sides of them, against {percent(odd.outside)} in all others, with "
        f"{values} values between {low} and {high} alone: these were resized by interpolation, and what stands along "
        f"borders is no class; the first is {first}",
        place(shard, field),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": field, "images": count, "of": of, "share": odd.inside, "others": odd.outside,
                  "by": odd.cut.by or "file", "part": odd.cut.names[odd.part], "kind": "interpolated",
                  "shard": short(shard)},
    )


def _finding(
    shard: Shard, field: str, seen: LabelImages, images: Sequence[str], of: int, scale: int = 1, common: str = ""
) -> Finding:
    classes, examples = ([f"{v / scale:g}" for v in values] for values in (seen.classes.tolist(), seen.examples))
    what = f"{len(images):,} of the {of:,} label images that were looked at in {short(shard)}"
    return RULE.finding(
        f"{what} hold values that are no class, between classes along their borders ({listed(examples)}; "
        f"{percent(seen.pixels)} of their pixels), and the others hold {listed(classes)} alone: they were resized by "
        f"interpolation or stored with losses; {f'{common}: ' if common else ''}{listed(images)}",
        place(shard, field),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": field, "images": len(images), "of": of, "values": tuple(examples), "share": seen.pixels,
                  "common": common, "kind": "interpolated", "shard": short(shard)},
    )
