"""Points of the requirements that no other test shows: the worked examples, the card, what a session counts."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from scripted import Scripted, approve, diagnosis, examined, fix, replace_line

from traindx.diagnose import diagnose
from traindx.session import run_debug_session_sync

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]


def diagnosed(folder: Path, symptom: str = "", **files: str) -> dict[str, Any]:
    for name, text in files.items():
        (folder / f"{name}.{'txt' if name == 'log' else 'py'}").write_text(text)
    return diagnose([folder], symptom=symptom).to_json()


@pytest.mark.parametrize("rate", ["3.0e-03", "0.01"])
def test_a_loss_that_rises_at_epoch_7_after_a_curriculum_step(tmp_path: Path, rate: str) -> None:
    losses = [2.3 * 0.8**i for i in range(6)] + [0.9 * 1.35**i for i in range(7)]
    lines = [f"Epoch {i}: train_loss={v:.4f} val_loss={1.05 * v:.4f} lr={rate}" for i, v in enumerate(losses, 1)]
    lines.insert(6, "Curriculum: switching to stage 2 (sequences of 2048 tokens)")
    log = "\n".join(lines) + "\n"
    result = diagnosed(tmp_path, log=log, train=(
        "import torch\nmodel = torch.nn.LSTM(32, 64)\n"
        f"optimizer = torch.optim.AdamW(model.parameters(), lr={rate})\n"))
    cause = result["hypotheses"][0]
    assert "learning rate is too high for the harder data" in cause["issue"]
    assert cause["location"] == "train.py:3"
    assert "epoch 6" in cause["issue"]


def test_one_token_for_every_input_leads_to_the_starved_trunk(tmp_path: Path) -> None:
    """It leads, and it is not certain: counting the parameters would settle it, and it says so."""
    log = "".join(f"step {i * 100} loss {6.9 + 0.01 * (i % 3):.3f} grad_norm 0.{30 + i % 5} lr 3e-4 "
                  "unique_predictions 1\n" for i in range(40))
    result = diagnosed(tmp_path, log=log)
    assert result["status"] == "needs_more_data"
    first = result["hypotheses"][0]
    assert "gives the same token or class for every input" in first["issue"]
    assert any("Count parameters by part" in c for c in first["confirm"])


MODEL = """import torch
from torch import nn

class LM(nn.Module):
    def __init__(self, vocab=50257, dim=512):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(dim, 8, 4 * dim, batch_first=True) for _ in range(2)])
        self.head = nn.Linear(dim, 64)

    def forward(self, x):
        h = self.embed(x)
        for layer in self.layers:
            h = layer(h)
        return self.head(h)
"""


def test_one_token_for_every_input_with_the_code_counts_the_parameters(tmp_path: Path) -> None:
    log = "".join(f"step {i * 100} loss {7.1 - 0.05 * i:.3f} acc 0.031\n" for i in range(20))
    result = diagnosed(tmp_path, "outputs are all the same token", log=log, model=MODEL)
    cause = result["hypotheses"][0]
    assert "80 % of the 32,069,184 parameters" in cause["issue"]
    assert cause["location"] == "model.py:7"
    assert diagnosed(tmp_path, "", log=log, model=MODEL)["status"] == "healthy"


def test_a_variance_of_one_value_is_placed_at_its_line(tmp_path: Path) -> None:
    good = "".join(f"step {i} loss {2.0 / (1 + i * 0.1):.4f} halting_loss 0.3\n" for i in range(30))
    warning = ("/home/u/halting.py:4: UserWarning: var(): degrees of freedom is <= 0. Correction should be strictly "
               "less than the reduction factor (input numel divided by output numel).\n"
               "  spread = halt_steps.unique().float().var()\n")
    bad = "".join(f"step {30 + i} loss nan halting_loss nan\n" for i in range(10))
    result = diagnosed(tmp_path, log=good + warning + bad, halting=(
        "import torch\n\ndef halting_loss(halt_steps):\n    spread = halt_steps.unique().float().var()\n"
        "    return 1.0 / (spread + 1e-3)\n"))
    cause = result["hypotheses"][0]
    assert cause["location"] == "halting.py:4"
    assert "halt" in cause["issue"]


def test_a_solved_session_counts_its_time_and_its_tries(workspace: Path) -> None:
    wrong = diagnosis(fix(replace_line("learning_rate = 9"), summary="Set it to nine"))
    now = iter(range(0, 10_000, 10))
    result = run_debug_session_sync(
        "the loss explodes", workspace, investigator=Scripted([wrong, diagnosis(confidence=0.9)]), approve=approve(),
        verify="grep -q 'learning_rate = 0.1' train.py", allow_run=True, examine=examined, report=False,
        clock=lambda: next(now))
    assert result.status == "fixed"
    counted = json.loads(Path(result.documents["retrospective.json"]).read_text())
    assert 0 <= counted["seconds_to_root_cause"] <= counted["seconds"]
    assert counted["fix_iterations"] == 2
    assert [d["summary"] for d in counted["did_not_work"]] == ["Set it to nine"]
    assert counted["monitor"] == ["loss falls below 1 within 20 steps"]
    assert counted["regressions"] == []
    assert "steps_without_recurrence" in counted


def test_the_packages_of_the_card_are_named() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    def names(requirements: list[str]) -> set[str]:
        return {re.split(r"[<>=!~;\[ ]", r, maxsplit=1)[0] for r in requirements}

    extras = project["optional-dependencies"]
    assert {"pydantic", "jinja2"} <= names(project["dependencies"])
    assert {"claude-agent-sdk", "anthropic"} <= names(extras["agent"])
    assert {"torch", "jax"} <= names(extras["torch"]) | names(extras["jax"])
    assert {"pytest", "pytest-asyncio"} <= names(extras["dev"])


def test_the_top_level_is_that_of_the_card() -> None:
    for folder in ("skills", "agents", "orchestrator", "tools", "templates", "tests"):
        assert (ROOT / folder).is_dir(), folder
    for file in ("pyproject.toml", "README.md"):
        assert (ROOT / file).is_file(), file
