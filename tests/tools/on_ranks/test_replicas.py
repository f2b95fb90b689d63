"""Records of several ranks held against each other: what parts, why, and what is left alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.finding import Finding
from traindx_tools.live.reading import read_folder
from traindx_tools.live.recording import FileRecorder
from traindx_tools.on_ranks.examine import compared
from traindx_tools.on_ranks.records import replica_of
from traindx_tools.triage import rank

Records = list[dict[str, Any]]
NAMES = ["body.weight [4, 4]", "body.bias [4]", "head.weight [1, 4]"]
LOOKS = range(5)


def own(rank: int, step: int) -> list[float]:
    """Three numbers that no other rank has."""
    return [1.0 + 0.3 * rank, 0.5 - 0.4 * rank, 0.1 * step + 0.2 * rank]


def same(rank: int, step: int) -> list[float]:
    return own(0, step)


def from_one_start(rank: int, step: int) -> list[float]:
    return own(rank if step else 0, step)


Held = Callable[[int, int], "list[float] | None"]


def records(rank: int, weights: list[Held], gradients: list[Held], *, ddp: tuple[bool, ...] = (True, True, True),
            constant: tuple[bool, ...] = (False, True, False), world: int = 2, job: str = "localhost 1",
            written: dict[int, list[float]] | None = None, **windows: Any) -> Records:
    told: Records = [{"what": "setup", "rank": rank, "world": world, "job": job, "group": [world, 0, world - 1],
                      "names": NAMES, "ddp": list(ddp)}]
    for step in LOOKS:
        more = {"constant": list(constant)} if step == 0 else {}
        told.append({"what": "weight", "step": step, "values": [w(rank, step) for w in weights], **more})
        told.append({"what": "gradient", "step": step, "values": [g(rank, step) for g in gradients]})
    told += [{"what": "written", "step": s, "values": v} for s, v in (written or {}).items()]
    return [*told, {"what": "windows", "steps": 5, "passes": 15, **windows}]


def both(weights: list[Held], gradients: list[Held], *, ranks: int = 2, **more: Any) -> list[Finding]:
    return compared(records(r, weights, gradients, world=ranks, **more) for r in range(ranks))


def kinds(found: list[Finding]) -> dict[str, object]:
    return {f.rule: f.measured["kind"] for f in found}


PARTED: list[Held] = [from_one_start] * 3
OWN: list[Held] = [own] * 3
SAME: list[Held] = [same] * 3
UNWRAPPED = (False, False, False)


@pytest.mark.parametrize(("windows", "kind", "words"), [
    ({"unsynchronised": 5, "late": 5, "turned": 10, "line": "/x/train.py:7"}, "flag-late", "5 of 5 steps the last"),
    ({"unsynchronised": 5, "line": "/x/train.py:7"}, "unsynchronised", "no_sync"),
    ({"around": 5, "line": "/x/train.py:7"}, "around", "no forward went through DistributedDataParallel"),
    ({}, "unknown", "synchronised in 5 of 5 steps"),
    ({"unsynchronised": 5, "several": True}, "unknown", "DistributedDataParallel"),
    ({"hook": True}, "hook", "communication hook"),
])
def test_why_gradients_differ_under_a_wrapper(windows: dict[str, Any], kind: str, words: str) -> None:
    found = both(PARTED, OWN, **windows)
    assert kinds(found) == {"R101": kind, "R102": "parted"}
    assert words in found[0].statement
    assert "in 5 of 5 steps that were compared" in found[0].statement
    assert (found[0].where.code == "/x/train.py:7") == ("line" in windows)
    assert found[0].severity.value == {"hook": "low", "unknown": "high"}.get(kind, "critical")


def test_some_gradients_that_nobody_reduces() -> None:
    found = both([same, same, from_one_start], [same, same, own], ddp=UNWRAPPED)
    assert kinds(found) == {"R101": "partly"}
    assert found[0].measured["parameter"] == "head.weight"
    assert found[0].measured["parameters"] == 1
    assert kinds(both([same, same, from_one_start], [same, same, own], ddp=(True, True, False))) == {"R101": "outside"}


def test_replicas_that_never_were_equal() -> None:
    (found,) = both(OWN, SAME, ddp=UNWRAPPED)
    assert (found.rule, found.measured["kind"], found.measured["equal_until"]) == ("R102", "start", None)


def test_a_window_now_and_then_that_is_not_synchronised() -> None:
    def once(rank: int, step: int) -> list[float]:
        return own(rank if step == 3 else 0, step)

    def after(rank: int, step: int) -> list[float]:
        return own(rank if step > 3 else 0, step)

    (found,) = both([after] * 3, [once] * 3, unsynchronised=1)
    assert (found.rule, found.measured["kind"], found.measured["equal_until"]) == ("R102", "parted", 3)
    assert "in 1 of 5 steps the last micro-batch was not synchronised" in found.statement


def again(rank: int, step: int) -> list[float]:
    return own(0 if step in (0, 3) else rank, step)


@pytest.mark.parametrize("found", [
    both(SAME, SAME), both(OWN, OWN, ddp=UNWRAPPED), both(SAME, OWN, ddp=UNWRAPPED),
    both(PARTED, OWN, ddp=UNWRAPPED, exchanges=True), both(PARTED, OWN, ddp=UNWRAPPED, apart=True),
    both([same, from_one_start, own], [same, own, own], ddp=UNWRAPPED),
    both([again] * 3, OWN, ddp=UNWRAPPED),
    both(PARTED, OWN, ddp=UNWRAPPED, written={3: [1.0, 2.0]}),
    both(OWN, [lambda r, s: None] * 3),
    both(OWN, [lambda r, s: [0.0, 0.0, 0.0]] * 3),
    compared([records(0, PARTED, OWN)]),
    compared([records(0, PARTED, OWN), records(1, PARTED, OWN, job="localhost 2")]),
    compared([records(r, PARTED, OWN) for r in (0, 1, 0, 1)]),
], ids=["equal", "models of their own", "averaged after each step", "shares of a layer", "stages",
        "a start of one value", "equal again", "averaged between two looks", "no gradients", "gradients of zero",
        "one rank", "two jobs", "two programs one after the other"])
def test_what_looks_alike_is_left_alone(found: list[Finding]) -> None:
    assert found == []


@pytest.mark.parametrize("found", [
    both(PARTED, OWN, ddp=UNWRAPPED), both([again] * 3, OWN), both(PARTED, OWN, written={3: [1.0, 2.0]}),
], ids=["never wrapped", "local SGD in a wrapper", "averaged between two looks"])
def test_what_may_be_meant_is_low(found: list[Finding]) -> None:
    assert found
    assert {f.severity.value for f in found} == {"low"}


def test_rounding_of_reduced_gradients_is_no_difference() -> None:
    def rounded(rank: int, step: int) -> list[float]:
        return [v * (1 + 0.004 * rank) for v in own(0, step)]

    assert both(SAME, [rounded] * 3) == []


def test_many_ranks_are_compared_in_a_sample_of_them() -> None:
    found = both(PARTED, OWN, ranks=200, around=5)
    assert kinds(found) == {"R101": "around", "R102": "parted"}
    assert found[0].measured["world"] == 200


@pytest.mark.parametrize("broken", [
    [], [{}], [{"what": "setup"}], [{"what": "weight", "step": 0, "values": []}],
    [{"what": "setup", "rank": "x", "world": 2, "job": "", "group": [], "names": [], "ddp": []}],
    [{"what": "setup", "rank": 0, "world": 2, "job": "", "group": [2, 0, 1], "names": ["a"], "ddp": []}],
])
def test_records_that_cannot_be_read_tell_nothing(broken: Records) -> None:
    assert replica_of(broken) is None
    assert compared([broken, records(1, PARTED, OWN)]) == []


@pytest.mark.parametrize("line", [
    {"what": "weight", "step": "x", "values": []}, {"what": "gradient", "step": 1, "values": [[1, 2]]},
    {"what": "gradient", "step": 1, "values": [["nan", 0, 0], None, [1e999, 0, 0]]},
    {"what": "written", "step": 1}, {"what": "windows", "steps": "many"}, {"what": "other", "step": 3},
])
def test_a_damaged_line_costs_itself_only(line: dict[str, Any]) -> None:
    told = [[*records(r, PARTED, OWN, around=5), line] for r in range(2)]
    assert "R102" in kinds(compared(told))


@pytest.mark.parametrize(("weights", "gradients", "ddp", "windows", "mode"), [
    (PARTED, OWN, (True,) * 3, {"unsynchronised": 5, "late": 5}, "dist.replicas-not-synchronised"),
    (PARTED, OWN, (True,) * 3, {"unsynchronised": 5}, "dist.replicas-not-synchronised"),
    (PARTED, OWN, (True,) * 3, {"around": 5}, "dist.replicas-not-synchronised"),
    (OWN, SAME, UNWRAPPED, {}, "dist.replicas-not-synchronised"),
    ([same, same, from_one_start], [same, same, own], (True, True, False), {}, "dist.frozen-parts-differ"),
])
def test_the_catalog_names_the_cause(weights: list[Held], gradients: list[Held], ddp: tuple[bool, ...],
                                     windows: dict[str, Any], mode: str) -> None:
    first = rank(both(weights, gradients, ddp=ddp, **windows), load_catalog())[0]
    assert first.mode.id == mode
    assert "{" not in first.claim


def test_a_run_folder_tells_it_with_its_files(tmp_path: Path) -> None:
    for number in range(2):
        recorder = FileRecorder(tmp_path, rank=lambda n=number: n)  # type: ignore[misc]
        for record in records(number, PARTED, OWN, around=5, line="/x/train.py:7"):
            recorder.mark("replica", **record)
        recorder.end("ok")
    (tmp_path / "run.json").write_text(json.dumps({"traindx": "live-run", "cwd": "/x"}))
    assert [f.where.code for f in read_folder(tmp_path).findings if f.rule == "R101"] == ["train.py:7"]
