"""JSON lines whose event says on which data a record was measured."""

from __future__ import annotations

import json

import pytest

from traindx_tools.on_logs import Run, read_run

TRAIN = [round(2 / (1 + i / 10), 4) for i in range(40)]


def read(*records: dict[str, object]) -> Run:
    return read_run(["-"], stdin="".join(json.dumps(r) + "\n" for r in records).encode())


def logged(event: str, member: str = "event", nested: bool = False) -> Run:
    rows: list[dict[str, object]] = []
    for i, value in enumerate(TRAIN):
        rows.append({"step": i, "loss": value, member: "train_step"})
        if i % 4 == 3:
            measured: dict[str, object] = {"loss": value + 0.1}
            rows.append({"step": i, **({"metrics": measured} if nested else measured), member: event})
    return read(*rows)


def groups(run: Run) -> dict[str, list[float]]:
    return {s.group: s.values.tolist() for s in run.series if s.name == "loss"}


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("member", ["event", "msg", "message", "type"])
@pytest.mark.parametrize("event", ["eval", "validation done", "val_epoch_end", "Evaluation"])
def test_an_event_of_an_evaluation_names_the_group(event: str, member: str, nested: bool) -> None:
    assert groups(logged(event, member, nested)) == {
        "train": TRAIN, "validation": [v + 0.1 for v in TRAIN[3::4]]}


def test_one_of_a_test_is_the_test() -> None:
    assert set(groups(logged("test_end"))) == {"train", "test"}


@pytest.mark.parametrize("event", ["step", "train and eval", "val test", "the eval loss is much better now",
                                   "evaluator_started", "latest", ""])
def test_other_words_name_no_group(event: str) -> None:
    assert set(groups(logged(event))) == {"train"}


def test_a_name_that_tells_its_own_group_keeps_it() -> None:
    run = read(*({"step": i, "train/loss": v, "event": "eval"} for i, v in enumerate(TRAIN)))
    assert set(groups(run)) == {"train"}


def test_events_that_are_no_texts_and_cut_lines_cost_nothing_else() -> None:
    rows = [{"step": i, "loss": v, "event": e} for i, (v, e) in enumerate(zip(TRAIN, [3, None, ["eval"], "eval"] * 10,
                                                                              strict=True))]
    run = read_run(["-"], stdin=("".join(json.dumps(r) + "\n" for r in rows) + '{"step": 99, "event": "ev').encode())
    assert groups(run)["validation"] == TRAIN[3::4]


@pytest.mark.parametrize("around", ["extra", "record/extra", "fields", "payload", "jsonPayload", "attributes"])
def test_what_a_logger_puts_around_its_values_is_no_part_of_their_names(around: str) -> None:
    def nested(values: dict[str, object]) -> dict[str, object]:
        for name in reversed(around.split("/")):
            values = {name: values}
        return values

    run = read(*(nested({"step": i, "loss": v, "val_loss": v + 1}) for i, v in enumerate(TRAIN)))
    assert groups(run) == {"train": TRAIN, "validation": [v + 1 for v in TRAIN]}
    assert run.series[0].step.tolist() == list(range(40))


@pytest.mark.parametrize("name", ["extra/", "extra_loss", "extra/extra_loss", "recorder/loss_extra"])
def test_names_that_only_look_like_wrapped_ones_stay(name: str) -> None:
    assert all(s.name != "loss" for s in read(*({"step": i, name: v} for i, v in enumerate(TRAIN))).series)
