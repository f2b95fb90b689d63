"""Every format that is known: each metric of its fixture with its value, place and group, and nothing else.

A TOML file of `tests/fixtures/logs/formats` a format: the files that its writer left, and what stands in them, looked
over by hand. `make_fixtures.py` beside them, and those of the folders above, run the writers that install; what is
written by trainers that need GPUs or clusters follows their sources.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.on_logs import Run, Series, read_run

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FORMATS = Path(__file__).parents[3] / "fixtures" / "logs" / "formats"
OF_WRITERS = (
    "hf_trainer_state", "hf_trainer_log", "lightning_csv", "tensorboard", "wandb", "mlflow", "trackio", "detectron2",
    "mmengine", "megatron", "deepspeed", "nemo", "nanogpt", "torchtitan", "torchtune", "fairseq", "keras",
    "llama_factory", "axolotl", "composer", "maxtext", "clu", "anything_else")
MISREAD_ONCE = (
    "verl", "timm", "yolov5", "ultralytics", "openrlhf", "dinov2", "composer_counts", "lightgbm", "settings",
    "speechbrain", "nccl")


def table(name: str) -> list[dict[str, Any]]:
    with (FORMATS / f"{name}.toml").open("rb") as file:
        files: list[dict[str, Any]] = tomllib.load(file)["files"]
    return files


EVERY = [(f"{name}-{Path(told['file']).name}", told) for name in (*OF_WRITERS, *MISREAD_ONCE) for told in table(name)]
CASES = [pytest.param(told, id=name) for name, told in EVERY]
TEXTS = [pytest.param(told, id=name) for name, told in EVERY if told["file"].endswith((".log", ".txt", ".csv"))]


def test_there_are_34_and_no_table_is_left_over() -> None:
    assert len({*OF_WRITERS, *MISREAD_ONCE}) == 34
    assert {p.stem for p in FORMATS.glob("*.toml")} == {*OF_WRITERS, *MISREAD_ONCE}


def read(told: dict[str, Any]) -> Run:
    return read_run([FORMATS / told["file"]])


def described(series: Series) -> tuple[str, str, str, int | None]:
    return series.original, series.name, series.group, series.rank


@pytest.mark.parametrize("told", CASES)
def test_every_metric_has_its_value_place_and_group(told: dict[str, Any]) -> None:
    beside = told.get("beside", "\0")
    found = [s for s in read(told).series if not s.original.startswith(beside)]
    expected = told.get("metrics", [])
    assert [described(s) for s in found] == [(m["written"], m["name"], m["group"], m.get("rank")) for m in expected]
    for series, metric in zip(found, expected, strict=True):
        np.testing.assert_allclose(series.values, metric["values"], rtol=1e-9, err_msg=metric["written"])
        place = next(p for p in ("step", "epoch", "line") if p in metric)
        np.testing.assert_allclose(getattr(series, place), metric[place], rtol=1e-9, err_msg=metric["written"])
        assert place == "step" or np.isnan(series.step).all()


@pytest.mark.parametrize("told", CASES)
def test_lines_that_were_not_used_are_counted(told: dict[str, Any]) -> None:
    assert sum(a.unused for a in read(told).artifacts) == told["unused"]


def test_the_settings_of_a_yaml_file_with_tags_of_its_own_are_read() -> None:
    run = read_run([FORMATS / "speechbrain.yaml"])
    assert (run.config["lr"], run.config["number_of_epochs"]) == (0.001, 15)


def test_both_ranks_that_a_watchdog_names_are_told() -> None:
    ranks = {r for e in read_run([FORMATS / "nccl.log"]).errors for r in (e.rank, *e.ranks) if r is not None}
    assert ranks == {0, 1}


@pytest.mark.parametrize("told", TEXTS)
def test_half_of_a_file_gives_no_value_that_the_whole_does_not(told: dict[str, Any], tmp_path: Path) -> None:
    data = (FORMATS / told["file"]).read_bytes()
    (tmp_path / Path(told["file"]).name).write_bytes(data[:len(data) // 2])
    whole = {v for m in told["metrics"] for v in m["values"]}
    cut = read_run([tmp_path])
    for series in cut.series:
        strange = [v for v in series.values[:-1] if not np.isnan(v) and not np.isclose(v, [*whole], rtol=1e-9).any()]
        assert not strange or "count/" in series.name, (series.original, strange)
