"""A history that a program holds in memory is a log; what cannot be one is refused with words."""

from __future__ import annotations

import math
from collections import namedtuple
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from traindx_tools import extract_training_metrics
from traindx_tools.errors import BadUsage
from traindx_tools.on_logs.in_memory import as_lines, taken_out

RECORDS = [{"epoch": i, "loss": 2.0 / (i + 1), "val_loss": 2.1 / (i + 1)} for i in range(6)]


class Frame:
    """What a frame of pandas offers of itself, without pandas."""

    def __init__(self, rows, index=None):
        self.rows, self.columns = rows, list(dict.fromkeys(k for row in rows for k in row))
        self.index = namedtuple("Index", "names")([None])

    def to_dict(self, _):
        return [{c: row.get(c, math.nan) for c in self.columns} for row in self.rows]


def losses(history):
    table = extract_training_metrics(history)
    return [row.value for row in table.rows() if row.metric == "loss" and row.group == "train"]


@pytest.mark.parametrize("history", [
    RECORDS,
    tuple(RECORDS),
    {name: [r[name] for r in RECORDS] for name in RECORDS[0]},
    {name: np.array([r[name] for r in RECORDS], np.float64) for name in RECORDS[0]},
    [{k: np.float64(v) for k, v in r.items()} for r in RECORDS],
    Frame(RECORDS),
    type("History", (), {"history": {"loss": [r["loss"] for r in RECORDS]}})(),
], ids=["records", "tuple", "columns", "arrays", "numpy scalars", "frame", "what Keras returns"])
def test_each_form_is_read(history):
    assert losses(history) == pytest.approx([r["loss"] for r in RECORDS])


def test_tensors_count_as_their_value():
    torch = pytest.importorskip("torch")
    assert losses([{"epoch": i, "loss": torch.tensor(1.5, requires_grad=True)} for i in range(3)]) == [1.5] * 3


def test_a_frame_of_pandas_with_its_index():
    pandas = pytest.importorskip("pandas")
    table = extract_training_metrics(pandas.DataFrame(RECORDS).set_index("epoch"))
    assert [r.epoch for r in table.rows() if r.metric == "loss" and r.group == "train"] == list(range(6))


def test_a_loss_that_stays_nan_is_one_in_a_frame():
    rows = [{"epoch": i, "loss": 2.0 - i / 10, "acc": 0.5} for i in range(6)]
    for row in rows[4:]:
        del row["loss"]
    assert [math.isnan(v) for v in losses(Frame(rows))] == [False] * 4 + [True] * 2


def test_an_empty_cell_of_a_frame_is_no_nan():
    rows = [{"step": i, "loss": 2.0} if i % 3 else {"step": i, "eval_loss": 2.0} for i in range(9)]
    assert losses(Frame([*rows, {"step": 9, "train_runtime": 3.0}])) == [2.0] * 6


@pytest.mark.parametrize(("history", "said"), [
    ({}, "the history is empty: got {}"),
    ([{}], "the history is empty"),
    (Frame([]), "a frame with no row and no column"),
    ({"loss": []}, "the history is empty"),
    ({"loss": [2.0, 1.0], "val_loss": [2.0]}, "different lengths (loss 2, val_loss 1)"),
    ([{"name": "run 1"}], "holds no number: its names are name"),
    ([2.0, 1.9], 'as in diagnose({"loss": [2.3, 1.9]})'),
    (np.zeros(3), "got float64[3]"),
], ids=["nothing", "an empty record", "an empty frame", "no value", "lengths", "words", "numbers alone", "an array"])
def test_what_is_no_history_is_refused_with_what_came_and_what_to_give(history, said):
    with pytest.raises(BadUsage) as refused:
        extract_training_metrics(history)
    assert said in str(refused.value)


def test_one_history_beside_paths():
    paths, lines = taken_out([RECORDS, "train.py"])
    assert paths == ["-", "train.py"]
    assert lines == as_lines(RECORDS)
    with pytest.raises(BadUsage, match="got 2 histories"):
        taken_out([RECORDS, {"loss": [1.0]}])
    with pytest.raises(BadUsage, match="standard input"):
        taken_out([RECORDS, "-"])


LOSS = [2.0 - i / 20 for i in range(20)]


def series(history):
    rows = list(extract_training_metrics(history).rows())
    return {(r.group, r.metric): [(v.step, v.value) for v in rows if (v.group, v.metric) == (r.group, r.metric)]
            for r in rows}


@pytest.mark.parametrize("history", [
    {"train": {"loss": LOSS}, "val": {"loss": LOSS}},
    {"train": {"step": list(range(20)), "loss": LOSS}, "val": {"step": list(range(20)), "loss": LOSS}},
    {"epoch": list(range(20)), "train": {"loss": np.array(LOSS)}, "val": {"loss": np.array(LOSS)}},
    {"metrics": {"train": {"loss": LOSS}, "val": {"loss": LOSS}}},
    [{"train": {"loss": v}, "val": {"loss": v}} for v in LOSS],
    {i: {"loss": v, "val_loss": v} for i, v in enumerate(LOSS)},
    {str(i): {"loss": v, "val_loss": v} for i, v in enumerate(LOSS)},
    {"loss": np.array(LOSS)[:, None], "val_loss": [[v] for v in LOSS]},
], ids=["groups", "with steps", "counter beside", "deeper", "records", "by number", "by number as text", "one column"])
def test_groups_and_numbered_records_are_read(history):
    found = series(history)
    assert set(found) == {("train", "loss"), ("validation", "loss")}
    assert all([v for _, v in values] == pytest.approx(LOSS) for values in found.values())


def test_groups_of_other_lengths_keep_their_own_steps():
    found = series({"train": {"step": list(range(20)), "loss": LOSS}, "val": {"step": [0, 10], "loss": [2.0, 1.9]}})
    assert [s for s, _ in found["validation", "loss"]] == [0, 10]
    assert len(found["train", "loss"]) == 20


def nested(levels, leaf, made):
    for _ in range(levels):
        leaf = made(leaf)
    return leaf


def within_itself():
    held = []
    held.append(held)
    return held


@pytest.mark.parametrize(("made", "said"), [
    (lambda: {"loss": np.ones((20, 2))}, r"holds several values a record: got float64\[20, 2\], expected one"),
    (lambda: {"loss": list(enumerate(LOSS))}, "several values a record"),
    (lambda: {"loss": within_itself()}, "holds no number"),
    (within_itself, r"got \[\[\[\[\[\.\.\.\]"),
    (lambda: {"loss": nested(100_000, 1.0, lambda v: [v])}, "holds no number"),
    (lambda: nested(100_000, {"loss": 1.0}, lambda v: {"a": v}), "holds no number"),
    (lambda: [nested(100_000, {"loss": 1.0}, lambda v: {"a": v})], "holds no number"),
    (lambda: nested(100_000, 1.0, lambda v: [v]), "expected the path"),
    (lambda: {"loss": []}, "is empty"),
    (lambda: [{}], "is empty"),
    (lambda: {"train": {"loss": []}}, "holds no number"),
    (lambda: {"loss": {"now": "unknown"}}, "holds no number"),
])
def test_what_cannot_be_read_as_one_number_a_record_is_told_in_a_line(made, said):
    from traindx.diagnose import diagnose

    history = made()
    with pytest.raises(BadUsage, match=said) as refused:
        diagnose(history)
    assert len(str(refused.value)) < 600
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("huge", [10**400, -10**400, 10**6000, Decimal("1e400"), Fraction(10**400)],
                         ids=["positive", "negative", "thousands of digits", "decimal", "fraction"])
def test_a_whole_number_that_no_double_holds_is_not_infinite(huge):
    from traindx.diagnose import diagnose

    report = diagnose([{"step": i, "loss": huge if i == 12 else v} for i, v in enumerate(LOSS)])
    assert "L101" not in {f.rule for f in report.seen.findings}
    assert "no number that a float holds" in " ".join(report.seen.notes)
    held = series({"step": range(20), "loss": [huge if i == 12 else v for i, v in enumerate(LOSS)]})["train", "loss"]
    assert [value for _, value in held] == [v for i, v in enumerate(LOSS) if i != 12]
