"""Relations that hold in all parts of the rows but one, each beside its healthy twin and a broken input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import part_making
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.rules import (
    d107_row_counts,
    d109_pairing,
    d131_other_header,
    d141_fields_apart,
    d155_clock_of_group,
    d156_filled_by_label,
    d157_span_units,
    d158_points_not_turned,
    d159_reversed_axis,
    d160_read_otherwise,
)

Seen = Callable[[ModuleType, Path], list[Finding]]
PLANTED: dict[str, tuple[ModuleType, str, str]] = {
    "summer_time": (d155_clock_of_group, "D155", "time of the rows of station 'DOR' is off by 2 hours"),
    "filled_by_class": (d156_filled_by_label, "D156", "gaps of glucose of patients.csv were filled by the label"),
    "header_rate": (d131_other_header, "D131", "the header says rate 8000 in 16 of 96 files"),
    "byte_offsets": (d157_span_units, "D157", "of the rows of source 'forum' are counted in bytes of UTF-8"),
    "mirrored_points": (d158_points_not_turned, "D158", "of the rows of subject 3: the pictures were mirrored"),
    "mirrored_boxes": (d158_points_not_turned, "D158", "of the rows of camera 1: the pictures were mirrored"),
    "window_labels": (d109_pairing, "D109", "y of night_05.npz goes at another pace than its inputs"),
    "reversed_axis": (d159_reversed_axis, "D159", "spectrum of the rows of lab 2 runs the other way"),
    "next_captions": (d141_fields_apart, "D141", "caption of captions.jsonl does not belong to feature"),
    "encoding_order": (d141_fields_apart, "D141",
                       "the length of text, the longest first): vectors was put in that order"),
    "thousands": (d160_read_otherwise, "D160", "numbers of sales of the rows of branch 'branch_2' have three digits"),
}


def alarms(found: list[Finding]) -> list[Finding]:
    return [f for f in found if f.severity is not Severity.INFO]


def test_all_sets_are_asked_of() -> None:
    assert PLANTED.keys() == part_making.SETS.keys()


@pytest.mark.parametrize("name", PLANTED)
def test_the_part_is_named(name: str, tmp_path: Path, seen_by: Seen) -> None:
    rule, told, said = PLANTED[name]
    part_making.SETS[name](tmp_path, True)
    (finding,) = alarms(seen_by(rule, tmp_path))
    assert finding.rule == told
    assert said in finding.statement


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_of_all_rules_the_one_that_says_what_it_is_comes_first(name: str, tmp_path: Path) -> None:
    part_making.SETS[name](tmp_path, True)
    report = examine([tmp_path])
    assert not report.notes
    assert report.findings[0].rule == PLANTED[name][1]
    assert not [f for f in report.wrong if f.severity.rank >= report.findings[0].severity.rank][1:]


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_its_healthy_twin_is_left_alone(name: str, tmp_path: Path) -> None:
    part_making.SETS[name](tmp_path, False)
    report = examine([tmp_path])
    assert not report.notes
    assert not report.wrong


@pytest.mark.parametrize("name", [n for n in PLANTED if n not in ("summer_time", "header_rate")])
def test_no_alarm_of_its_own_rule_on_the_twin(name: str, tmp_path: Path, seen_by: Seen) -> None:
    part_making.SETS[name](tmp_path, False)
    assert not alarms(seen_by(PLANTED[name][0], tmp_path))


# the clock


def hours(folder: Path, late: Callable[[int, Any], Any], days: int = 50, extra: dict[str, Any] | None = None) -> None:
    """Loads of five sites by hour; `late`: hours by which each site's day is late, by site and day."""
    rng, at = np.random.default_rng(3), np.arange(24 * days)
    rows: dict[str, list[Any]] = {"site": [], "time": [], "load": []}
    for site in range(5):
        hour = (at - np.broadcast_to(late(site, at // 24), at.shape)) % 24
        load = 100 + 20 * site + 30 * np.sin(2 * np.pi * (hour - 8) / 24) + 10 * np.cos(4 * np.pi * hour / 24)
        rows["site"] += [f"s{site}"] * len(at)
        rows["time"] += (1_700_006_400 + 3600 * at).tolist()
        rows["load"] += np.round(load + rng.normal(0, 4, len(at)), 2).tolist()
    part_making.write_csv(folder / "load.csv", rows | (extra or {}))


def test_an_hour_in_a_part_of_the_time_is_told_as_a_season(tmp_path: Path, seen_by: Seen) -> None:
    hours(tmp_path, lambda site, day: (site == 2) * (day >= 25))
    (finding,) = alarms(seen_by(d155_clock_of_group, tmp_path))
    assert finding.measured["kind"] == "season"
    assert "site 's2' is off by 1 hour:" in finding.statement


@pytest.mark.parametrize("late", [
    lambda site, day: 0.4 * (site == 2),  # further west
    lambda site, day: [0, 1, 2, 3, 4][site],  # all of them somewhere else
    lambda site, day: 2.0 * (day >= 25),  # all of them, at the same time
    lambda site, day: 0.1 * day * (site == 2),  # a clock that drifts
], ids=["west", "everywhere", "together", "drift"])
def test_sites_with_days_of_their_own_are_left_alone(late: Any, tmp_path: Path, seen_by: Seen) -> None:
    hours(tmp_path, late)
    assert not alarms(seen_by(d155_clock_of_group, tmp_path))


def test_a_field_that_names_the_zone_makes_it_a_remark(tmp_path: Path, seen_by: Seen) -> None:
    zones = ["CET" if site == 2 else "UTC" for site in range(5) for _ in range(24 * 50)]
    hours(tmp_path, lambda site, day: 1.0 * (site == 2), extra={"tz": zones})
    (finding,) = seen_by(d155_clock_of_group, tmp_path)
    assert finding.severity is Severity.INFO


# gaps


@pytest.mark.parametrize("fill", ["zero", "region"])
def test_gaps_filled_otherwise_are_left_alone(fill: str, tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(4)
    label, region = rng.integers(0, 2, 1500), rng.integers(0, 3, 1500)
    x = rng.normal(10 + label + region, 2.0)
    gap = rng.random(1500) < 0.2
    for k in range(3):
        own = gap & (region == k)
        x[own] = 0.0 if fill == "zero" else x[~gap & (region == k)].mean()
    part_making.write_csv(tmp_path / "t.csv", {"x": np.round(x, 3).tolist(), "region": region.tolist(),
                                               "label": label.tolist()})
    assert not seen_by(d156_filled_by_label, tmp_path)


# spans


@pytest.mark.parametrize("unit", ["from 1", "pairs", "stretch"])
def test_spans_in_other_units(unit: str, tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(5)
    records = []
    for i in range(400):
        text, spans = part_making.sentence(rng)
        text = f"{'😀 ' if unit == 'pairs' else ''}{text}"
        shift = 2 if unit == "pairs" else 0
        odd = {"from 1": i % 4 == 1, "pairs": i % 4 == 1, "stretch": 250 <= i < 340}[unit]
        start, end = (spans[0][k] + shift for k in ("start", "end"))
        if odd and unit == "stretch":
            start, end = (len(text[:n].encode()) for n in (start, end))
        elif odd:
            start, end = start + 1, end + 1
        records.append({"text": text, "span_start": start, "span_end": end, "annotator": f"a{i % 4}"})
    part_making.write_lines(tmp_path / "t.jsonl", records)
    (finding,) = alarms(seen_by(d157_span_units, tmp_path))
    assert finding.measured["unit"] == {"from 1": "characters from 1 on", "pairs": "units of UTF-16",
                                        "stretch": "bytes of UTF-8"}[unit]
    assert finding.measured["by"] == ("stretch" if unit == "stretch" else "annotator")


def test_bytes_throughout_are_a_remark(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(6)
    records = []
    for i in range(300):
        text, spans = part_making.sentence(rng)
        at = [len(text[: spans[0][k]].encode()) for k in ("start", "end")]
        records.append({"text": text, "start": at[0], "end": at[1], "source": f"s{i % 3}"})
    part_making.write_lines(tmp_path / "t.jsonl", records)
    (finding,) = seen_by(d157_span_units, tmp_path)
    assert finding.severity is Severity.INFO
    assert finding.measured["kind"] == "throughout"


def test_pieces_of_words_are_no_spans_in_bytes(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(7)
    records = []
    for i in range(300):
        text, _ = part_making.sentence(rng)
        start = int(rng.integers(0, len(text) - 6))
        records.append({"text": text, "start": start, "end": start + int(rng.integers(2, 6)), "source": f"s{i % 3}"})
    part_making.write_lines(tmp_path / "t.jsonl", records)
    assert not seen_by(d157_span_units, tmp_path)


def test_spans_that_are_none_are_read(tmp_path: Path) -> None:
    rows = [{"text": "a b c d e f", "spans": s} for s in (
        [[1, 3, "x"], [2]], [{"start": "one"}], [[2**70, 3]], None, [{"start": -5, "end": 99}], [[]])]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows * 30)))
    assert not examine([tmp_path]).notes


# pictures


@pytest.mark.parametrize("bad", [True, False])
def test_points_in_a_table_beside_files(bad: bool, tmp_path: Path, seen_by: Seen) -> None:
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(8)
    (tmp_path / "img").mkdir()
    rows: dict[str, list[Any]] = {k: [] for k in ("file", "subject", "eye_x", "eye_y")}
    for i in range(160):
        x, y = rng.uniform(8, 56, 2)
        grid = np.mgrid[:64, :64]
        picture = rng.normal(60, 8, (64, 64)) + 150 * np.exp(-((grid[1] - x) ** 2 + (grid[0] - y) ** 2) / 30)
        picture = picture[:, ::-1] if bad and i % 4 == 3 else picture
        name = f"{i % 4}_{i:03d}.png"
        image.fromarray(np.clip(picture, 0, 255).astype(np.uint8)).save(tmp_path / "img" / name)
        for key, value in zip(rows, (f"img/{name}", f"p{i % 4}", round(x, 1), round(y, 1)), strict=True):
            rows[key].append(value)
    part_making.write_csv(tmp_path / "points.csv", rows)
    found = alarms(seen_by(d158_points_not_turned, tmp_path))
    assert len(found) == bad
    assert all("subject 'p3'" in f.statement for f in found)


def test_pictures_mirrored_with_their_points_are_left_alone(tmp_path: Path, seen_by: Seen) -> None:
    part_making.mirrored_points(tmp_path, False)
    held = dict(np.load(tmp_path / "faces.npz"))
    own = held["subject"] == 3
    held["image"][own] = held["image"][own, :, ::-1]
    held["points"][own, ::2] = 31 - held["points"][own, ::2]
    np.savez(tmp_path / "faces.npz", **held)
    assert not alarms(seen_by(d158_points_not_turned, tmp_path))


# pace, axes, separators


def test_windows_that_were_not_cut_to_length(tmp_path: Path, seen_by: Seen) -> None:
    part_making.window_labels(tmp_path, True, cut=False)
    (finding,) = alarms(seen_by(d107_row_counts, tmp_path))
    assert "x of night_05.npz has 338 rows and y 507 (1.5 for each)" in finding.statement


def test_a_list_of_names_beside_the_rows_is_no_lost_field(tmp_path: Path, seen_by: Seen) -> None:
    for k in range(5):
        np.savez(tmp_path / f"part_{k}.npz", x=np.zeros((50, 4)) + np.arange(4), y=np.arange(50) % 3,
                 names=np.arange(7))
    assert not alarms(seen_by(d107_row_counts, tmp_path))


@pytest.mark.parametrize("shape", [(24,), (12, 20)])
def test_a_reversed_axis_of_a_file(shape: tuple[int, ...], tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(9)
    profile = np.linspace(0, 1, shape[-1]) ** 2 + 0.2 * np.sin(np.arange(shape[-1]))
    for k in range(5):
        x = profile * rng.uniform(0.8, 1.2, (60, *[1] * len(shape))) + rng.normal(0, 0.1, (60, *shape))
        np.savez(tmp_path / f"site_{k}.npz", x=x[..., ::-1] if k == 3 else x, y=rng.integers(0, 2, 60))
    (finding,) = alarms(seen_by(d159_reversed_axis, tmp_path))
    assert "of site_3.npz runs the other way" in finding.statement or "x of site_3.npz runs" in finding.statement


def test_groups_with_profiles_of_their_own_are_not_reversed(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(10)
    kind = rng.integers(0, 5, 500)
    x = rng.normal(size=(5, 30)).cumsum(axis=1)[kind] + rng.normal(0, 0.3, (500, 30))
    np.savez(tmp_path / "a.npz", x=x, lab=kind)
    assert not seen_by(d159_reversed_axis, tmp_path)


@pytest.mark.parametrize("seed", [3, 6, 7, 8])
def test_groups_that_lean_to_one_side_are_not_reversed(seed: int, tmp_path: Path, seen_by: Seen) -> None:
    """A line that all have in the middle, and one of each laboratory's own beside it."""
    rng, at = np.random.default_rng(100 + seed), np.arange(50)
    own = np.stack([np.exp(-((at - m) ** 2) / 30) * 0.4 for m in rng.uniform(5, 45, 6)])
    lab = rng.integers(0, 6, 600)
    x = np.exp(-((at - 25) ** 2) / 200) + own[lab] + rng.normal(0, 0.1, (600, 50))
    np.savez(tmp_path / "a.npz", x=x.astype(np.float32), lab=lab)
    assert not seen_by(d159_reversed_axis, tmp_path)


@pytest.mark.parametrize("how", ["finer", "small"])
def test_a_branch_of_small_or_finer_numbers_is_left_alone(how: str, tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(11)
    branch = rng.integers(0, 5, 2000)
    sales = np.round(rng.lognormal(6, 1, 2000), 2)
    own = branch == 2
    sales[own] = np.round(sales[own], 1) if how == "small" else np.round(rng.lognormal(6, 1, int(own.sum())), 3)
    if how == "small":
        sales[own] = np.round(sales[own] / 30, 2)
    part_making.write_csv(tmp_path / "s.csv", {"branch": [f"b{b}" for b in branch], "sales": sales.tolist()})
    assert not seen_by(d160_read_otherwise, tmp_path)


def test_two_tables_of_one_length_that_have_nothing_in_common(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(12)
    np.save(tmp_path / "vectors.npy", rng.normal(size=(700, 32)).astype(np.float32))
    part_making.write_lines(tmp_path / "texts.jsonl", [{"text": part_making.sentence(rng)[0]} for _ in range(700)])
    assert not seen_by(d141_fields_apart, tmp_path)


def test_broken_inputs_are_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", image=np.full((60, 32, 32), np.nan), points=np.full((60, 4), np.inf),
             subject=np.arange(60) % 3)
    rows = ["time,station,x,label"] + [f"{'never' if i % 7 else '2020-13-45'},s{i % 3},{'' if i % 2 else 'NaN'},{i % 2}"
                                       for i in range(120)]
    (tmp_path / "b.csv").write_text("\n".join(rows))
    assert not examine([tmp_path]).notes
