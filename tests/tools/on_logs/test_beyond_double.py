"""A finite number that is too large for a double is no infinity, in whatever format it is written."""

from __future__ import annotations

import sys
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
@pytest.mark.parametrize("huge", [DIGITS, "1e400", f"-{DIGITS}"])
def test_it_is_the_largest_number_and_said_to_be(tmp_path: Path, name: str, huge: str) -> None:
    seen = examine([written(tmp_path, name, falling(12, huge))], root=tmp_path)
    loss = seen.run.loss
    assert loss is not None
    assert loss.values[12] == np.copysign(sys.float_info.max, -1 if huge.startswith("-") else 1)
    assert any("a finite number is too large for a double" in note for note in seen.notes)
    assert "L101" not in {f.rule for f in seen.findings}


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
    assert (np.flatnonzero(np.isinf(loss.values)).tolist(), np.argmax(np.abs(loss.values[:14]))) == ([15], 12)


def test_a_log_of_nothing_else_costs_no_warning(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    from traindx.diagnose import diagnose

    diagnose([written(tmp_path, "a.log", [DIGITS] * 20)], root=tmp_path)
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]
