"""Fields that are exchanged, turned or written otherwise in one part of the rows, and what only looks so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from table_making import table

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.relations import rank_correlations
from traindx_tools.on_data.repairs import contrary
from traindx_tools.on_data.rules import d146_contrary_relation

Seen = Callable[[ModuleType, Path], list[Finding]]
Columns = dict[str, Any]


def ratings(rng: np.random.Generator, rows: int = 900) -> Columns:
    """Three people who rate; the rating rises with quality and length, each as strict as they are."""
    who = rng.integers(0, 5, rows)
    quality = rng.normal(size=rows)
    length = np.round(np.exp(4 + 0.4 * quality + 0.2 * rng.normal(size=rows)))
    strict = np.array([0.0, -0.7, 0.5, -0.3, 0.2])[who]
    rating = np.clip(np.round(3 + quality + strict + 0.3 * rng.normal(size=rows)), 1, 5)
    return {"quality": quality, "length": length, "rating": rating, "annotator": [f"ann_{k}" for k in who]}


def spans(rng: np.random.Generator, rows: int = 400) -> Columns:
    """Starts and ends in seconds since the recording began."""
    start = rng.uniform(0, 500, rows)
    return {"start": start, "end": start + rng.gamma(2, 3, rows), "site": [f"s{k}" for k in rng.integers(0, 4, rows)]}


def boxes(rng: np.random.Generator, form: str, rows: int = 250) -> Any:
    """Boxes in pictures of 640 x 480."""
    w, h = rng.uniform(20, 300, rows), rng.uniform(20, 200, rows)
    x, y = rng.uniform(0, 1, rows) * (640 - w), rng.uniform(0, 1, rows) * (480 - h)
    return {"corner": np.stack([x, y, w, h], 1), "corners": np.stack([x, y, x + w, y + h], 1),
            "centre": np.stack([x + w / 2, y + h / 2, w, h], 1), "yx": np.stack([y, x, h, w], 1)}[form]


def alarms(found: list[Finding]) -> list[Finding]:
    return [f for f in found if f.severity is not Severity.INFO]


def one(found: list[Finding]) -> Finding:
    (finding,) = alarms(found)
    assert finding.severity.rank >= Severity.MEDIUM.rank
    return finding


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_one_annotator_turned_the_scale(form: str, tmp_path: Path, seen_by: Seen) -> None:
    made = ratings(np.random.default_rng(0))
    turned = np.array(made["annotator"]) == "ann_3"
    made["rating"] = np.where(turned, 6 - made["rating"], made["rating"])
    table(tmp_path / "ratings", form, made)
    finding = one(seen_by(d146_contrary_relation, tmp_path))
    assert finding.measured["by"] == "annotator"
    assert "ann_3" in str(finding.measured["part"])
    assert finding.measured["repair"] == "rating turned around (6 - value)"


@pytest.mark.parametrize("form", ["csv", "jsonl", "npz"])
def test_starts_and_ends_are_exchanged_at_one_site(form: str, tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(1)
    for k in range(2):
        made = spans(rng)
        bad = np.array(made["site"]) == "s2"
        if form == "npz":
            bad, made = np.full(400, k == 1), made | {"site": np.zeros(400)}
        made["start"], made["end"] = np.where(bad, made["end"], made["start"]), np.where(
            bad, made["start"], made["end"])
        table(tmp_path / f"log_{k}", form, made)
    if form == "npz":
        for k in range(2, 5):
            table(tmp_path / f"log_{k}", form, spans(rng) | {"site": np.zeros(400)})
    finding = one(seen_by(d146_contrary_relation, tmp_path))
    assert finding.measured["repair"] == "start and end exchanged"
    assert "s2" in str(finding.measured["part"]) or "log_1" in str(finding.measured["part"])


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_stretch_in_which_they_are_exchanged(form: str, tmp_path: Path, seen_by: Seen) -> None:
    made = spans(np.random.default_rng(2), 600)
    at = slice(200, 260)
    made["start"][at], made["end"][at] = made["end"][at].copy(), made["start"][at].copy()
    table(tmp_path / "log", form, made)
    finding = one(seen_by(d146_contrary_relation, tmp_path))
    assert finding.measured["rows"] == (200, 259)


def test_the_held_out_data_have_them_exchanged(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(3)
    table(tmp_path / "train", "csv", spans(rng))
    made = spans(rng)
    table(tmp_path / "val", "csv", made | {"start": made["end"], "end": made["start"]})
    assert "validation data" in one(seen_by(d146_contrary_relation, tmp_path)).statement


@pytest.mark.parametrize("form", ["npz", "csv"])
def test_one_channel_of_one_device_has_the_opposite_sign(form: str, tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(4)
    for k in range(5):
        a = rng.normal(size=300)
        b, c = a + 0.4 * rng.normal(size=300), a + 0.5 * rng.normal(size=300)
        table(tmp_path / f"device_{k}", form, {"ax": a, "ay": -b if k == 2 else b, "az": c})
    finding = one(seen_by(d146_contrary_relation, tmp_path))
    assert finding.measured["repair"] == "ay with the opposite sign"
    assert "device_2" in str(finding.measured["part"])


@pytest.mark.parametrize("form", ["csv", "npz", "jsonl"])
@pytest.mark.parametrize(("usual", "odd", "told"), [
    ("corner", "corners", "as two corners where all others are corner and size"),
    ("corners", "corner", "as corner and size where all others are two corners"),
    ("corner", "centre", "as centre and size where all others are corner and size"),
    ("corner", "yx", "with x and y exchanged"),
])
def test_boxes_of_one_file_in_another_form(
    form: str, usual: str, odd: str, told: str, tmp_path: Path, seen_by: Seen
) -> None:
    rng = np.random.default_rng(5)
    for k in range(5):
        made = boxes(rng, odd if k == 3 else usual)
        columns = {f"bbox_{n}": made[:, i] for i, n in enumerate(("x", "y", "w", "h"))} if form == "csv" else {
            "bbox": made}
        table(tmp_path / f"part_{k}", form, columns)
    finding = one(seen_by(d146_contrary_relation, tmp_path))
    assert finding.measured["repair"] == f"boxes {told}"
    assert "part_3" in str(finding.measured["part"])


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_lists_of_boxes(form: str, tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(10)
    for k in range(5):
        lists = [boxes(rng, "corners" if k == 3 else "corner", int(rng.integers(1, 6))).tolist() for _ in range(80)]
        table(tmp_path / f"part_{k}", form, {"boxes": lists, "camera": [f"c{i % 3}" for i in range(80)]})
    finding = one(seen_by(d146_contrary_relation, tmp_path))
    assert finding.measured["repair"] == "boxes as two corners where all others are corner and size"
    assert "part_3" in str(finding.measured["part"])


FORMS = {"corner": "corner and size", "corners": "two corners", "centre": "centre and size"}


@pytest.mark.parametrize("form", ["csv", "jsonl", "npz"])
@pytest.mark.parametrize(("usual", "odd"), [(a, b) for a in FORMS for b in FORMS if a != b])
@pytest.mark.parametrize("names", [("train", "val"), ("first", "second")])
def test_boxes_of_two_files_in_two_forms(
    form: str, usual: str, odd: str, names: tuple[str, str], tmp_path: Path, seen_by: Seen
) -> None:
    rng = np.random.default_rng(15)
    for name, written, rows in zip(names, (usual, odd), (700, 220), strict=True):
        made = boxes(rng, written, rows)
        columns = {f"b{i}": made[:, i] for i in range(4)} if form == "csv" else {"target": made}
        table(tmp_path / name, form, columns)
    told = {f"boxes as {FORMS[odd]} where the other part is {FORMS[usual]}",
            f"boxes as {FORMS[usual]} where the other part is {FORMS[odd]}"}
    assert one(seen_by(d146_contrary_relation, tmp_path)).measured["repair"] in told


@pytest.mark.parametrize("usual", FORMS)
def test_two_files_of_one_form_whose_boxes_differ(usual: str, tmp_path: Path, seen_by: Seen) -> None:
    """Smaller things, and things in another place of the picture."""
    rng = np.random.default_rng(16)
    made = boxes(rng, usual, 900)
    table(tmp_path / "train", "npz", {"target": made[:600]})
    for change in (made[600:] * 0.4, made[600:][made[600:, 0] > 250], made[600:] / np.array([640, 480, 640, 480])):
        table(tmp_path / "val", "npz", {"target": change})
        assert not [f for f in alarms(seen_by(d146_contrary_relation, tmp_path)) if f.measured["kind"] == "boxes"]


def test_four_numbers_that_are_no_boxes(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(17)
    for name, rows in (("train", 500), ("val", 200)):
        table(tmp_path / name, "npz", {"target": rng.normal(size=(rows, 4)) * (2 if name == "val" else 1) + 3,
                                       "none": np.full((rows, 4), np.nan)})
    assert not alarms(seen_by(d146_contrary_relation, tmp_path))


def test_boxes_of_one_source_in_another_form_and_a_field_that_says_so(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(6)
    source = rng.integers(0, 4, 1000)
    both = np.where((source == 1)[:, None], boxes(rng, "corners", 1000), boxes(rng, "corner", 1000))
    made = {"bbox": both, "source": [f"set{k}" for k in source]}
    table(tmp_path / "boxes", "jsonl", made)
    assert one(seen_by(d146_contrary_relation, tmp_path)).measured["by"] == "source"
    table(tmp_path / "boxes", "jsonl", made | {"box_format": ["xyxy" if k == 1 else "xywh" for k in source]})
    found = seen_by(d146_contrary_relation, tmp_path)
    assert not alarms(found)
    assert "its field box_format says so" in found[0].statement


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_annotators_of_different_strictness_are_left_alone(form: str, tmp_path: Path, seen_by: Seen) -> None:
    table(tmp_path / "ratings", form, ratings(np.random.default_rng(7)))
    assert not alarms(seen_by(d146_contrary_relation, tmp_path))


def test_a_relation_that_only_is_weaker_or_another_is_left_alone(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(8)
    for k in range(6):
        a = rng.normal(size=300) + k
        b = (0.2 if k == 2 else 1.0) * a + 0.6 * rng.normal(size=300)
        hot, dry = (35, 10) if k == 4 else (20, 60)  # a desert among cities: the order of two unlike fields
        table(tmp_path / f"site_{k}", "csv", {"a": a, "b": b, "temperature": hot + rng.normal(size=300),
                                              "humidity": dry + 3 * rng.normal(size=300)})
    assert not alarms(seen_by(d146_contrary_relation, tmp_path))


def test_noise_gives_no_relation(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(9)
    for k in range(6):
        table(tmp_path / f"part_{k}", "npz", {"x": rng.normal(size=(200, 8)), "who": rng.integers(0, 9, 200)})
    assert not seen_by(d146_contrary_relation, tmp_path)


def test_numbers_that_are_none_are_read(tmp_path: Path) -> None:
    assert np.isfinite(rank_correlations(np.array([[np.nan, 1.0], [np.nan, 2.0], [np.nan, np.nan]]))).all()
    (tmp_path / "a.csv").write_text("bbox_x,bbox_y,bbox_w,bbox_h,site\n" + "nan,inf,,3,a\n" * 40 + "1,2\n" * 40)
    (tmp_path / "b.jsonl").write_text('{"bbox": [1, 2, 3], "site": "x"}\n{"bbox": null, "site": 3}\n' * 40)
    assert not examine([tmp_path]).notes


def test_a_flag_that_is_constant_in_a_group(tmp_path: Path) -> None:
    """A recorder without a third lead has no flag for it: below the class there, and above it elsewhere."""
    rng = np.random.default_rng(0)
    device = np.arange(900) % 3
    np.savez(tmp_path / "all.npz", signal=rng.normal(size=(900, 40)), rhythm=rng.integers(0, 2, 900) * (device == 1),
             third_ok=(device != 1).astype(np.int64), device=device, age=rng.integers(40, 90, 900))
    assert not [f for f in examine([tmp_path]).findings if f.rule == "D146"]


def drawn(folder: Path, form_of: Callable[[str], str], much: float = 1.0, broken: bool = False) -> None:
    """Shelves whose things are records within a line, each with a box, drawn by four people; `pia`'s are smaller."""
    rng = np.random.default_rng(21)
    with (folder / "shelves.jsonl").open("w") as file:
        for k in range(700):
            who = ("pia", "tom", "una", "rob")[rng.integers(0, 4)]
            made = boxes(rng, "corner", int(rng.integers(1, 5))) * ((1, 1, much, much) if who == "pia" else 1)
            if form_of(who) == "corners":
                made[:, 2:] += made[:, :2]
            things = [{"kind": "tin", "place": [round(v) for v in b]} for b in made.tolist()]
            if broken and k % 50 == 0:
                things += [{"kind": "box"}, {"kind": "jar", "place": [1, None, "a"]}]
            file.write(json.dumps({"picture": k, "annotator": who, "things": things}) + "\n")


def test_boxes_of_records_within_a_line(tmp_path: Path, seen_by: Seen) -> None:
    drawn(tmp_path, lambda who: "corners" if who == "una" else "corner")
    finding = one(seen_by(d146_contrary_relation, tmp_path))
    assert finding.measured["field"] == "things.place"
    assert finding.measured["repair"] == "boxes as two corners where all others are corner and size"
    assert "una" in str(finding.measured["part"])


@pytest.mark.parametrize(("form", "much", "broken"), [
    ("corner", 1.0, False), ("corners", 1.0, False), ("corner", 0.4, False), ("corner", 1.0, True)])
def test_records_within_a_line_whose_boxes_are_of_one_form(
    form: str, much: float, broken: bool, tmp_path: Path, seen_by: Seen
) -> None:
    drawn(tmp_path, lambda who: form, much, broken)
    assert not alarms(seen_by(d146_contrary_relation, tmp_path))


def station_months(folder: Path, turned: tuple[int, ...], warm: bool = False) -> None:
    """Eleven files of a lake: its bed is colder than its top; `warm`: in winter it is not."""
    rng = np.random.default_rng(33)
    for k in range(11):
        level = 12 - 9 * np.cos(2 * np.pi * k / 12)
        top = level + rng.normal(size=300)
        bed = top - rng.gamma(4, 0.4, 300) - 0.05
        if warm and k in (0, 10):  # ice above: the bed is warmer, by a little
            bed = top + rng.gamma(6, 0.02, 300) + 0.01
        names = ("bed", "top") if k in turned else ("top", "bed")
        table(folder / f"lake_{k:02d}", "csv", {names[0]: top, names[1]: bed, "depth": rng.normal(size=300)})


@pytest.mark.parametrize("turned", [(6,), (8, 9)])
def test_two_columns_are_exchanged_in_some_files_of_a_season(turned: tuple[int, ...], tmp_path: Path, seen_by: Seen
                                                             ) -> None:
    station_months(tmp_path, turned)
    found = alarms(seen_by(d146_contrary_relation, tmp_path))
    assert [f.measured["part"] for f in found] == [f"lake_{k:02d}.csv" for k in turned]
    assert all(f.measured["kind"] == "exchanged" for f in found)


@pytest.mark.parametrize(("turned", "warm"), [((), False), ((), True), ((1, 3, 4, 6, 8, 9), False)])
def test_files_of_a_season_whose_order_is_natural_or_even(turned: tuple[int, ...], warm: bool, tmp_path: Path,
                                                          seen_by: Seen) -> None:
    station_months(tmp_path, turned, warm)
    (tmp_path / "lake_11.csv").write_text("top,bed,depth\n1,2\n,,\nx,y,z\n")
    assert not alarms(seen_by(d146_contrary_relation, tmp_path))


@pytest.mark.parametrize(("total", "called"), [(90.0, "zenith"), (1.0, "complement"), (73.0, "")])
def test_what_a_quantity_and_its_contrary_add_up_to(total: float, called: str) -> None:
    """By both middles: neither part reaches the ends of what is possible."""
    rng = np.random.default_rng(0)
    usual = np.sort(total * (0.03 + 0.9 * rng.beta(2, 4, 3000)))
    mine = np.sort(total - total * (0.03 + 0.9 * rng.beta(2, 4, 900)))
    found, said = contrary(mine, usual)
    assert found == pytest.approx(total, rel=0.02 if not called else 1e-9)
    assert called in said
