"""A finite number that is too large for a double is no infinity and no value, in whatever format it is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx_tools.examine import examine
from traindx_tools.on_logs.reading import read_run

DIGITS = str(10**400)
FORMS = {"a.log": "step {i} loss {v}\n", "a.jsonl": '{{"step": {i}, "loss": {v}}}\n', "a.csv": "{i},{v}\n"}


def written(folder: Path, name: str, values: list[str]) -> Path:
    lines = "".join(FORMS[name].format(i=i, v=v) for i, v in enumerate(values))
    (folder / name).write_text(("step,loss\n" if name.endswith("csv") else "") + lines)
    return folder / name


def falling(at: int, value: str) -> list[str]:
    values = [f"{2 - i / 40:.3f}" for i in range(20)]
    return [*values[:at], value, *values[at + 1:]]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("huge", [DIGITS, f"-{DIGITS}", "7" * 5000])
def test_it_is_left_out_and_said_to_be(tmp_path: Path, name: str, huge: str) -> None:
    seen = examine([written(tmp_path, name, falling(12, huge))], root=tmp_path)
    loss = seen.run.loss
    assert loss is not None
    assert loss.values.tolist() == [round(2 - i / 40, 3) for i in range(20) if i != 12]
    line = 14 if name.endswith("csv") else 13
    assert any(f"1 value is no number that a float holds (more than 308 digits): left out, the first in line {line}" in
               note for note in seen.notes)
    assert not seen.findings


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("written_as", ["1e999", "-1e+400", "1E309"])
def test_an_exponent_that_overflows_is_infinity(tmp_path: Path, name: str, written_as: str) -> None:
    seen = examine([written(tmp_path, name, falling(12, written_as))], root=tmp_path)
    assert seen.run.loss is not None
    assert seen.run.loss.values[12] == np.copysign(np.inf, -1 if written_as.startswith("-") else 1)
    assert "L101" in {f.rule for f in seen.findings}


@pytest.mark.parametrize("name", FORMS)
def test_the_largest_double_is_told_as_a_bound(tmp_path: Path, name: str) -> None:
    seen = examine([written(tmp_path, name, falling(12, "1.7976931348623157e+308"))], root=tmp_path)
    assert seen.run.loss is not None
    assert np.isfinite(seen.run.loss.values).all()
    assert any("to beyond 1e+150 at" in f.statement for f in seen.findings)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("word", ["inf", "Infinity", "-inf"])
def test_an_infinity_that_is_printed_stays_one(tmp_path: Path, name: str, word: str) -> None:
    if name.endswith("jsonl"):
        word = word.replace("inf", "Infinity")
    seen = examine([written(tmp_path, name, falling(12, word))], root=tmp_path)
    assert seen.run.loss is not None
    assert np.isinf(seen.run.loss.values[12])
    assert "L101" in {f.rule for f in seen.findings}
    assert not any("double" in note for note in seen.notes)


def test_both_in_one_log_are_told_apart(tmp_path: Path) -> None:
    values = falling(12, DIGITS)
    loss = read_run(written(tmp_path, "a.log", [*values[:15], "inf", *values[16:]])).loss
    assert loss is not None
    assert [int(loss.step[i]) for i in np.flatnonzero(np.isinf(loss.values))] == [15]
    assert 12 not in loss.step.tolist()


def test_such_numbers_cost_no_warning(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    from traindx.diagnose import diagnose

    diagnose([written(tmp_path, "a.log", [*falling(12, "0.5"), *[DIGITS] * 20])], root=tmp_path)
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]
