"""The examples are what they say: real logs, found right by the engine; the one for `make demo` fails and heals."""

from __future__ import annotations

import csv
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from traindx.diagnose import diagnose

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EXPECTED = {
    "numpy-lr": ("loss.log-of-zero", "np.log(1.0 - prob)"),
    "torch-zero-grad": ("accum.zero-grad-missing", "optimizer.step()"),
    "torch-softmax-ce": ("loss.softmax-before-ce", "return torch.softmax(scores, dim=-1)"),
}


@pytest.fixture
def copy(tmp_path):
    def make(name):
        folder = tmp_path / "project"
        shutil.copytree(EXAMPLES / name, folder, ignore=shutil.ignore_patterns("README.md"))
        return folder

    return make


@pytest.mark.parametrize("name", EXPECTED)
def test_a_failed_run_is_diagnosed_with_its_cause_and_its_line(copy, name):
    """A cause, or what is suspected far before all else: how sure a check is of itself is measured and changes."""
    folder = copy(name)
    report = diagnose([folder])
    mode, code = EXPECTED[name]
    first, *others = report.seen.verdict.hypotheses
    assert first.mode.id == mode
    assert first.confidence > 0.6
    assert all(h.confidence < 0.3 for h in others)
    line = int(re.fullmatch(r"train\.py:(\d+)", report.to_json()["hypotheses"][0]["location"])[1])
    near = (folder / "train.py").read_text().splitlines()[line - 4:line + 3]
    assert any(code in text for text in near)


def test_the_healthy_run_is_called_healthy(copy):
    assert diagnose([copy("healthy")]).status == "healthy"


def test_nothing_beside_the_example_gives_its_cause_away_or_is_needed(copy):
    folder = copy("numpy-lr")
    for other in ("metrics.csv",):
        (folder / other).unlink()
    assert diagnose([folder]).to_json()["root_causes"][0]["failure_mode"] == "loss.log-of-zero"


def train(folder, steps=3000):
    done = subprocess.run([sys.executable, "train.py", "--steps", str(steps)], cwd=folder, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    with (folder / "metrics.csv").open(newline="") as file:
        return [float(row["loss"]) for row in csv.DictReader(file)], done.stdout


@pytest.mark.slow
def test_the_demo_run_fails_as_its_log_says_and_heals_with_a_larger_epsilon(copy):
    folder = copy("numpy-lr")
    losses, output = train(folder)
    first = next(i for i, loss in enumerate(losses) if math.isnan(loss))
    assert 10 < first < 100
    assert all(math.isnan(loss) for loss in losses[first:])
    assert max(losses[first - 5:first]) < 2 * losses[first - 10], "nothing grows before it"
    logged = [line for line in (EXAMPLES / "numpy-lr" / "log.txt").read_text().splitlines() if line.startswith("eval")]
    assert logged == [line for line in output.splitlines() if line.startswith("eval")]

    script = folder / "train.py"
    script.write_text(script.read_text().replace("EPS = 1e-12", "EPS = 1e-7"))
    healed, output = train(folder)
    assert all(math.isfinite(loss) for loss in healed)
    assert healed[-1] < 0.2
    assert float(re.findall(r"val_acc (\S+)", output)[-1]) > 0.9


@pytest.mark.parametrize("name", [*EXPECTED, "jax-key-reuse", "healthy"])
def test_every_example_has_a_script_a_log_and_a_page_that_names_the_command(name):
    folder = EXAMPLES / name
    compile((folder / "train.py").read_text(), "train.py", "exec")
    assert len((folder / "log.txt").read_text().splitlines()) >= 12
    assert f"traindx diagnose examples/{name}" in (folder / "README.md").read_text()
