"""Stretches, identifiers, masks and columns: what holds in one part of the data only; and their healthy twins."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from data_making import classes

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.label_stretches import other_mix
from traindx_tools.on_data.rules import d124_text_pairing as d124
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.stretches import heaviest
from traindx_tools.on_data.turns import of_messages, of_texts

Seen = Callable[[ModuleType, Path], list[Finding]]
WORDS = [f"{a}{b}" for a in ("ka", "lo", "mi", "ne", "pu", "ra", "si", "to", "ve", "zu") for b in
         ("bar", "dan", "fel", "gor", "hin", "jas", "kem", "lun", "mot", "nir", "pol", "quin", "res", "sat", "tul")]


def found(folder: Path, rule: str) -> list[Finding]:
    report = examine([folder])
    assert not report.notes
    return [f for f in report.findings if f.rule == rule and f.severity is not Severity.INFO]


def table(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="") as stream:
        out = csv.DictWriter(stream, rows[0])
        out.writeheader()
        out.writerows(rows)


def people(count: int, first: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    x = rng.normal(size=(count, 4))
    return [{"key": f"u{first + i:06d}", "seen": f"2024-03-{1 + i % 28:02d} 10:{i % 60:02d}:{first % 60:02d}",
             "a": f"{v[0]:.5f}", "b": f"{v[1]:.5f}", "c": f"{v[2]:.5f}", "label": int(v[0] > 0)}
            for i, v in enumerate(x)]


@pytest.mark.parametrize("copied", [40, 0])
def test_held_out_rows_that_have_other_keys_in_training(copied: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    train, valid = people(600, 0, rng), people(200, 600, rng)
    valid[:copied] = [{**v, **{k: t[k] for k in ("a", "b", "c", "label")}}
                      for v, t in zip(valid[:copied], train, strict=False)]
    table(tmp_path / "train.csv", train)
    table(tmp_path / "valid.csv", valid)
    assert len(found(tmp_path, "D113")) == (copied > 0)


@pytest.mark.parametrize("other", [True, False])
def test_a_stretch_that_is_there_again_with_other_labels(other: bool, tmp_path: Path) -> None:
    rows = classes(600, np.random.default_rng(1))
    rows["x"][400:460] = rows["x"][100:160]
    rows["y"][400:460] = (rows["y"][100:160] + other) % 6
    np.savez(tmp_path / "train.npz", **rows)
    told = found(tmp_path, "D122")
    assert [f.measured["rows"] for f in told] == [(400, 459)] * other


def test_rows_that_several_annotators_labelled(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    rows = classes(300, rng)
    x, y = np.concatenate([rows["x"]] * 2), np.concatenate([rows["y"], rng.permutation(rows["y"])])
    np.savez(tmp_path / "train.npz", x=x, y=y)
    assert not found(tmp_path, "D122")


def _late(y: Any) -> Any:
    return np.concatenate([y[:600], np.roll(y[600:], 2)])


def _mapped(y: Any) -> Any:
    return np.concatenate([y[:700], (y[700:] + 1) % 6])


@pytest.mark.parametrize(
    ("change", "kind", "start"), [(_late, "stretch-shifted", 600), (_mapped, "stretch-mapped", 700)]
)
def test_labels_that_do_not_belong_from_some_row_on(change: Any, kind: str, start: int, tmp_path: Path) -> None:
    rows = classes(1000, np.random.default_rng(3))
    np.savez(tmp_path / "train.npz", x=rows["x"], y=change(rows["y"]))
    told = found(tmp_path, "D123")
    assert [f.measured["kind"] for f in told] == [kind]
    assert abs(told[0].measured["rows"][0] - start) <= 12


def test_a_harder_stretch_a_noisy_one_and_a_sorted_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    rows = classes(1000, rng)
    rows["x"][600:] += 6 * rng.normal(size=(400, 12)).astype(np.float32)
    np.savez(tmp_path / "train_a.npz", **rows)
    rows = classes(1000, rng)
    rows["y"][500:700] = rng.permutation(rows["y"][500:700])
    np.savez(tmp_path / "train_b.npz", **rows)
    rows = classes(1000, rng)
    order = np.argsort(rows["y"], kind="stable")
    np.savez(tmp_path / "train_c.npz", x=rows["x"][order], y=rows["y"][order])
    assert not found(tmp_path, "D123")


def dialogues(count: int, rng: np.random.Generator) -> list[dict[str, str]]:
    made = []
    for _ in range(count):
        own = rng.choice(WORDS, 4, replace=False)
        made.append({"question": " ".join(["what", "is", "the", *own, *rng.choice(WORDS, 2)]),
                     "answer": " ".join(["it", "is", "the", *own[:3], *rng.choice(WORDS, 3)])})
    return made


def lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))


@pytest.mark.parametrize("lag", [1, -3, 0])
def test_answers_that_belong_to_other_questions_from_some_row_on(lag: int, tmp_path: Path) -> None:
    rows = dialogues(400, np.random.default_rng(5))
    answers = [r["answer"] for r in rows]
    for i in range(250, 400):
        rows[i] = {**rows[i], "answer": answers[250 + (i - 250 - lag) % 150]}
    lines(tmp_path / "train.jsonl", rows)
    told = found(tmp_path, "D124")
    assert [f.measured["lag"] for f in told] == [-lag] * (lag != 0)
    assert all(abs(f.measured["rows"][0] - 250) <= 6 for f in told)


def as_messages(row: dict[str, str]) -> dict[str, Any]:
    return {"messages": [{"role": "system", "content": "You are brief."}, {"role": "user", "content": row["question"]},
                         {"role": "assistant", "content": row["answer"]}]}


SPOKEN: list[Callable[[dict[str, str]], dict[str, Any]]] = [
    as_messages,
    lambda r: {"meta": {"n": 1}, "conversations": [{"from": "human", "value": r["question"]},
                                                   {"from": "gpt", "value": r["answer"]}]},
    lambda r: {"text": f"### Instruction:\n{r['question']}\n\n### Response:\n{r['answer']}"},
    lambda r: {"text": f"<|im_start|>user\n{r['question']}<|im_end|>\n<|im_start|>assistant\n{r['answer']}<|im_end|>"},
]


@pytest.mark.slow
@pytest.mark.parametrize("form", SPOKEN)
@pytest.mark.parametrize("lag", [1, -2, 0])
def test_answers_within_conversations_that_belong_to_other_rows(
        form: Callable[[dict[str, str]], dict[str, Any]], lag: int, tmp_path: Path, seen_by: Seen) -> None:
    """One form is asked by all observations together."""
    rows = dialogues(6400, np.random.default_rng(15))
    answers = [r["answer"] for r in rows]
    for i in range(2500, 3100):
        rows[i] = {**rows[i], "answer": answers[i - lag]}
    lines(tmp_path / "train.jsonl", [form(r) for r in rows])
    told = found(tmp_path, "D124") if form is as_messages else seen_by(d124, tmp_path)
    assert [abs(f.measured["lag"]) for f in told] == [abs(lag)] * (lag != 0)
    assert all(abs(f.measured["rows"][0] - 2500) <= 6 and abs(f.measured["rows"][1] - 3099) <= 6 for f in told)


@pytest.mark.parametrize("rows", [
    [], [[]], [[{"role": "user"}]], [["a"], [{"role": "user", "content": "x"}]], [[{"role": 1, "content": None}]],
    [[{"a": "x", "b": "y"}]] * 3,
])
def test_lists_that_are_no_conversations(rows: list[Any]) -> None:
    assert of_messages(rows) == {}
    assert of_texts(["User: a", "no mark", ""]) == {}


def test_turns_of_conversations_beside_single_ones(tmp_path: Path) -> None:
    """From row 200 on each question repeats the answer before it, as histories do."""
    rows = dialogues(400, np.random.default_rng(6))
    for i in range(200, 400):
        rows[i]["question"] += " " + rows[i - 1]["answer"]
    lines(tmp_path / "train.jsonl", rows)
    assert not found(tmp_path, "D124")


def padded(rows: int, rng: np.random.Generator) -> dict[str, Any]:
    lengths = rng.integers(5, 17, rows)
    mask = (np.arange(16) < lengths[:, None]).astype(np.int64)
    return {"input_ids": rng.integers(3, 900, (rows, 16)) * mask, "attention_mask": mask}


@pytest.mark.parametrize("fault", ["rows", "ones", "none", "hidden-everywhere"])
def test_a_mask_of_other_rows_in_one_file(fault: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    for i in range(4):
        made = padded(200, rng)
        if fault == "rows" and i == 2:
            made["attention_mask"] = np.roll(made["attention_mask"], 1, axis=0)
        if fault == "ones" and i == 2:
            made["attention_mask"][:] = 1
        if fault == "hidden-everywhere":
            made["attention_mask"] *= rng.random(made["attention_mask"].shape) > 0.15
        np.savez(tmp_path / f"train_{i}.npz", **made)
    told = found(tmp_path, "D125")
    assert [f.measured["shard"] for f in told] == ["train_2.npz"] * (fault in ("rows", "ones"))


def test_rows_that_hold_nothing_are_judged_without_failing(tmp_path: Path) -> None:
    np.savez(tmp_path / "train_0.npz", x=np.zeros((0, 4), np.float32), y=np.zeros(0, np.int64))
    np.savez(tmp_path / "train_1.npz", x=np.full((90, 4), np.nan, np.float32), y=np.arange(90) % 3)
    lines(tmp_path / "notes.jsonl", [{"question": "", "answer": ""}] * 100)
    report = examine([tmp_path])
    assert not report.notes
    assert not [f for f in report.findings if f.rule in ("D122", "D123", "D124", "D125")]


def measures(rows: int, rng: np.random.Generator) -> dict[str, Any]:
    return {"width": rng.normal(3, 1, rows), "height": rng.normal(5, 1, rows), "mass": rng.gamma(2, 2, rows),
            "y": rng.integers(0, 3, rows)}


@pytest.mark.parametrize("fault", ["exchanged", "shifted", "each-its-own"])
def test_columns_that_changed_places_in_one_file(fault: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    for i in range(4):
        made = measures(300, rng)
        if fault == "exchanged" and i == 1:
            made["width"], made["height"] = made["height"], made["width"]
        if fault == "shifted" and i == 1:
            made["width"] += 1.5
        if fault == "each-its-own":
            made["width"] += i
            made["height"] -= i
        np.savez(tmp_path / f"train_{i}.npz", **made)
    told = found(tmp_path, "D126")
    assert [(f.measured["shard"], f.measured["field"]) for f in told] == [("train_1.npz", "width")] * (
        fault == "exchanged")


@pytest.mark.parametrize(("form", "low", "high"), [("float32", 2**27, 2**31 - 1), ("float64", 2**54, 2**62)])
def test_ids_that_went_through_a_float(form: str, low: int, high: int, tmp_path: Path) -> None:
    ids = np.random.default_rng(9).integers(low, high, 300)
    np.savez(tmp_path / "a.npz", user=ids.astype(form).astype(np.int64), x=np.ones((300, 2)))
    assert [f.measured["type"] for f in found(tmp_path, "D127")] == [form]


@pytest.mark.parametrize("ids", [
    np.random.default_rng(9).integers(2**27, 2**31 - 1, 300),
    np.random.default_rng(9).integers(2**16, 2**28, 300) * 4096,
    1_700_000_000_000_000_000 + np.random.default_rng(9).integers(0, 10**8, 300) * 1_000_000_000,
    np.full(300, -(2**63)),
])  # fmt: skip
def test_large_numbers_that_are_whole(ids: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", user=ids.astype(np.int64), x=np.ones((300, 2)))
    assert not found(tmp_path, "D127")


@pytest.mark.parametrize("late", [True, False])
def test_numbers_beside_a_text_are_inputs_as_well(late: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(10)
    rows = people(900, 0, rng)
    for row in rows:
        row["note"] = " ".join(rng.choice(WORDS[:9], 8))
    labels = [r["label"] for r in rows]
    for i in range(600, 900):
        rows[i]["label"] = labels[600 + (i - 600 - 2 * late) % 300]
    table(tmp_path / "train.csv", rows)
    assert [f.measured["lag"] for f in found(tmp_path, "D123")] == [-2] * late


@pytest.mark.parametrize(("held", "name", "told"), [
    ([0, 1], "valid", True), ([3], "valid", True), ([3], "test", False), ([0, 1, 2, 3, 4], "valid", False),
    ([7, 8], "valid", False)])  # fmt: skip
def test_classes_that_held_out_data_lack(held: list[int], name: str, told: bool, tmp_path: Path) -> None:
    """One value in test data stands for labels; other classes altogether are another rule's."""
    rng = np.random.default_rng(11)
    rows = classes(600, rng)
    np.savez(tmp_path / "train.npz", **rows)
    np.savez(tmp_path / f"{name}.npz", x=rng.normal(size=(200, 12)).astype(np.float32), y=rng.choice(held, 200))
    assert bool(found(tmp_path, "D128")) is told


@pytest.mark.parametrize("fault", [True, False])
def test_colours_that_changed_places_in_one_file(fault: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(12)
    for i in range(3):
        level = rng.normal((150, 120, 90), 12, (200, 1, 1, 3)) + rng.normal(0, 20, (200, 1, 1, 1))
        x = np.clip(level + rng.normal(0, 10, (200, 8, 8, 3)), 0, 255).astype(np.uint8)
        np.savez(tmp_path / f"train_{i}.npz", x=x[..., ::-1] if fault and i == 1 else x, y=rng.integers(0, 3, 200))
    told = found(tmp_path, "D126")
    assert [(f.measured["field"], f.measured["other"]) for f in told] == [("x[channel 0]", "x[channel 2]")] * fault


def test_a_mark_that_only_training_rows_have_is_no_class_that_is_lacking(tmp_path: Path) -> None:
    """How a row was augmented is 0 throughout in held-out data; the labels are all there."""
    rng = np.random.default_rng(12)
    for name, rows, mark in (("train", 600, rng.integers(0, 4, 600)), ("valid", 200, np.zeros(200, np.int64))):
        np.savez(tmp_path / f"{name}.npz", **classes(rows, rng), augmentation=mark)
    assert not found(tmp_path, "D128")


def _constant(rows: Any, rng: np.random.Generator) -> None:
    rows["y"][620:760] = 2


def _other_mix(rows: Any, rng: np.random.Generator) -> None:
    rows["y"][620:760] = rng.choice(6, 140, p=[0.6, 0.4, 0, 0, 0, 0])


@pytest.mark.parametrize(("change", "kind"), [(_constant, "stretch-constant"), (_other_mix, "stretch-mixed")])
def test_labels_of_a_stretch_that_are_constant_or_of_another_mix(change: Any, kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(13)
    rows = classes(1200, rng)
    change(rows, rng)
    np.savez(tmp_path / "train.npz", **rows)
    told = found(tmp_path, "D123")
    assert [f.measured["kind"] for f in told] == [kind]
    assert np.abs(np.subtract(told[0].measured["rows"], (620, 759))).max() <= 12


def _grouped_by_source(rng: np.random.Generator) -> Any:
    order = rng.permutation(6).repeat(200)
    rows = classes(8000, rng)
    take = np.concatenate([np.flatnonzero(rows["y"] == k)[:200] for k in order[::200]])
    return {"x": rows["x"][take], "y": rows["y"][take]}


def _negatives_in_one_stretch(rng: np.random.Generator) -> Any:
    rows = classes(4000, rng)
    mixed, same = np.arange(900), 900 + np.flatnonzero(rows["y"][900:] == 0)[:300]
    take = np.concatenate([mixed[:600], same, mixed[600:]])
    return {"x": rows["x"][take], "y": rows["y"][take]}


def _unrelated_labels_in_runs(rng: np.random.Generator) -> Any:
    rows = classes(1200, rng)
    return {"x": rows["x"], "y": np.repeat(rng.integers(0, 4, 60), 20)}


@pytest.mark.parametrize("made", [_grouped_by_source, _negatives_in_one_stretch, _unrelated_labels_in_runs])
def test_sources_in_stretches_are_no_filled_labels(made: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "train.npz", **made(np.random.default_rng(14)))
    assert not found(tmp_path, "D123")


def test_false_alarms_of_another_mix_in_a_stretch_are_rare() -> None:
    rng, alarms = np.random.default_rng(15), 0
    for _ in range(300):
        y = rng.integers(0, 3, 400)
        scores = rng.normal(size=(400, 3)) + 2.0 * np.eye(3)[y]
        hits = scores.argmax(axis=1) == y
        stretch = heaviest(np.where(hits, -0.5, 1.0))
        seen = other_mix(stretch, y, scores, 1) if 40 <= stretch.rows <= 240 else None
        alarms += seen is not None and seen.log_chance < np.log(LEVEL)
    assert alarms <= 2  # at a level of 1e-3


def test_a_stretch_of_constant_labels_whose_inputs_are_broken_is_of_another_kind(tmp_path: Path) -> None:
    rows = classes(1200, np.random.default_rng(16))
    rows["y"][620:760], rows["x"][620:760] = 2, np.nan
    np.savez(tmp_path / "train.npz", **rows)
    assert not found(tmp_path, "D123")
    (tmp_path / "train.npz").write_bytes((tmp_path / "train.npz").read_bytes()[:-900])
    assert not found(tmp_path, "D123")


@pytest.mark.parametrize("clock", [True, False])
def test_a_clock_is_no_label_that_a_stretch_could_exchange(clock: bool, tmp_path: Path) -> None:
    """A recording that is back where it was for a while: its time goes on, and classes of it would not."""
    rng, t = np.random.default_rng(2), np.arange(1800)
    phase = t // 450
    there = np.where((t >= 1280) & (t < 1420), 5 - phase, phase)  # the last two quarters are exchanged around 1350
    x = np.eye(4)[there] + 0.05 * rng.normal(size=(1800, 4))
    other = {"time": t * 0.031} if clock else {"label": phase}
    np.savez(tmp_path / "train.npz", x=x.astype(np.float32), **other)
    assert len(found(tmp_path, "D123")) == (not clock)
