"""A diagnosis ends soon on whatever a file holds: no pattern goes over a long word once for each of its letters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from traindx_tools.catalog.fitting import Circumstances
from traindx_tools.errors import UnreadableInput
from traindx_tools.examine import examine
from traindx_tools.on_logs.configs.files import read_config
from traindx_tools.on_logs.curves import learning, skill
from traindx_tools.on_logs.judge import judge_run
from traindx_tools.on_logs.reading import read_run

LOG = "".join(f"step {i} loss {2.0 / (1 + i):.4f}\n" for i in range(40))
LONG = 100_000

LINES = {
    "a loss of so many digits": "step 41 loss " + "7" * LONG,
    "digits alone": "9" * LONG,
    "decimals": "step 41 loss 0." + "1" * LONG,
    "a step of so many digits": "step " + "8" * LONG + " loss 0.5",
    "an exponent": "step 41 loss 1e999999999",
    "an exponent of so many digits": "step 41 loss 1e" + "9" * LONG,
    "hexadecimal": "0x" + "f" * LONG,
    "percent": "10%|" * LONG,
    "pairs": "loss=1.0 " * LONG,
    "names and digits": "x1" * LONG,
    "versions": "1." * LONG,
    "times": "1:" * LONG,
    "brackets": "[" * LONG,
    "objects": '{"a":' * LONG + "1" + "}" * LONG,
    "blanks": " " * LONG + "x",
    "a carriage return a record": "\r".join(f" {i}%|## | {i}/100 loss=0.5" for i in range(20_000)),
}


@pytest.mark.parametrize("line", LINES)
def test_a_long_line_is_read_soon_and_hides_nothing_before_it(line: str, tmp_path: Path,
                                                              within: Callable[[float], Any]) -> None:
    (tmp_path / "run.log").write_text(LOG + LINES[line])
    with within(8):
        run = examine([tmp_path / "run.log"]).run
    loss = run.first("loss")
    assert loss is not None
    assert list(loss.values[:40]) == [round(2.0 / (1 + i), 4) for i in range(40)]


@pytest.mark.parametrize(("text", "scheduled"), [
    ("lr = " + "7" * LONG, False), ("x" * LONG, False), ("\n" * 1_000_000, False),
    ("x" * LONG + "\ns = torch.optim.lr_scheduler.StepLR(o, 3)\n", True),
])
def test_code_beside_a_log_is_looked_through_soon(text: str, scheduled: bool, tmp_path: Path,
                                                  within: Callable[[float], Any]) -> None:
    (tmp_path / "train.py").write_text("    import torch\n" + text)
    with within(5):
        known = Circumstances.of([tmp_path / "train.py"], ())
    assert known.libraries == {"torch"}
    assert known.scheduled is scheduled


def test_a_number_of_thousands_of_digits_in_a_configuration_is_refused_in_words() -> None:
    for name in ("c.toml", "c.yaml"):
        with pytest.raises(UnreadableInput, match="digits"):
            read_config(name, f"lr{' =' if name.endswith('toml') else ':'} " + "7" * LONG)


def test_what_kind_of_run_it_is_is_asked_once_for_all_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks at every name: asked for each series, the work grows with the square of the columns."""
    asked = []
    real = learning.is_reinforcement
    monkeypatch.setattr(skill, "is_reinforcement", lambda run: asked.append(run) or real(run))
    names = [f"m{i}" for i in range(60)]
    rows = "".join(f"{i}," + ",".join(str(0.1 * i) for _ in names) + "\n" for i in range(30))
    (tmp_path / "metrics.csv").write_text("step," + ",".join(names) + "\n" + rows)
    run = read_run([tmp_path / "metrics.csv"])
    assert len(run.series) == 60
    judge_run(run, [])
    assert 1 <= len(asked) <= 10
