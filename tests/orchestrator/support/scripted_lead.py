"""A run whose cause no rule knows, and a lead, an adversary and specialists whose replies a test scripts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from traindx.investigators.claude import ClaudeInvestigator
from traindx.investigators.claude_code.asking import Asker, Reply
from traindx.investigators.claude_code.conversation import Question
from traindx.investigators.claude_code.failures import Failure
from traindx.investigators.offline import OfflineInvestigator
from traindx.session import run_debug_session_sync
from traindx.settings import Settings

SHUFFLED = "    return labels[torch.randperm(len(labels))]"


TRAIN = f"""import torch
from torch import nn

BATCH = 32


def targets(batch):
    labels = batch["label"]
{SHUFFLED}


def main(loader, model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    criterion = nn.CrossEntropyLoss()
    for step, batch in enumerate(loader):
        optimizer.zero_grad()
        loss = criterion(model(batch["image"]), targets(batch))
        loss.backward()
        optimizer.step()
        print(f"step {{step}} loss {{loss.item():.4f}}")
"""


Answer = dict[str, Any] | Failure | Callable[[Question, Asker], "dict[str, Any] | Failure"]


PLACE = TRAIN.split("\n").index(SHUFFLED) + 1


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A run at chance, whose cause stands at a line that no rule of ours knows."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    wobble = (0.011, -0.014, 0.004, -0.006, 0.017, -0.009)
    (folder / "log.txt").write_text("".join(
        f"step {50 * n} loss {2.303 + wobble[n % 6]:.4f} lr 3.0e-04 accuracy {0.1 + wobble[n % 5] / 2:.3f}\n"
        for n in range(60)))
    return folder


@pytest.fixture
def healthy(tmp_path: Path) -> Path:
    """A run with the same line in which the instruments see nothing wrong."""
    folder = tmp_path / "healthy"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    (folder / "log.txt").write_text("".join(
        f"step {50 * n} loss {0.4 + 2.0 * 0.93 ** n + 0.01 * (n % 3):.4f} lr 3.0e-04\n" for n in range(60)))
    return folder


@pytest.fixture
def replies(monkeypatch: pytest.MonkeyPatch) -> dict[str, Answer]:
    """Who answers what; everybody else knows nothing. `ASKED` is filled with the questions."""
    scripted: dict[str, Answer] = {}

    async def ask(self: Asker, question: Question, seconds: float, most: float = 9.0) -> Reply:
        ASKED.append(question)
        answer = scripted.get(question.who, OPEN if question.who == "lead" else {"relation": "supports"})
        given = answer(question, self) if callable(answer) else answer
        return Reply(question.who, failure=given) if isinstance(given, Failure) else Reply(question.who, given)

    ASKED.clear()
    monkeypatch.setattr(Asker, "ask", ask)
    return scripted


ASKED: list[Question] = []


OPEN: dict[str, Any] = {"status": "needs_data"}


def said() -> list[str]:
    """What was said, by the first words of its heading."""
    marks = (("look", "# The case"), ("facts", "# Facts"), ("guess", "# The engine's guess"), ("news", "# What came"),
             ("objection", "# An adversary"), ("attack", "# The diagnosis"))
    return [next(key for key, mark in reversed(marks) if mark in q.prompt) for q in ASKED]


def measured(asker: Asker, text: str = "pairs that belong together: 0.102", who: str = "lead", code: str = "x") -> str:
    """The id of a probe's output with this text."""
    assert asker.bench is not None
    return asker.bench.outputs.add("run_probe", {"code": code}, text, who).id


def ran(name: str, quote: str = "pairs that belong together: 0.102", **changes: Any) -> dict[str, Any]:
    return {"claim": "the labels belong to other images", "supports": True, "value": "0.102", "place": f"{name}:1",
            "quote": quote, **changes}


def read_line(**changes: Any) -> dict[str, Any]:
    return {"claim": "the labels are shuffled apart from the images", "supports": True, "value": "",
            "place": f"train.py:{PLACE}", "quote": SHUFFLED.strip(), **changes}


def lead(*evidence: dict[str, Any], outer: tuple[dict[str, Any], ...] = (), **changes: Any) -> dict[str, Any]:
    edit = {"path": "train.py", "line": PLACE, "end_line": PLACE, "original": SHUFFLED,
            "replacement": "    return labels"}
    option = {"option": "A", "summary": "Return the labels in their own order", "edits": [edit], "change": "",
              "metric": "accuracy above 0.2 within 500 steps", "verify": "python train.py",
              "otherwise": "look at the loader"}
    return {"status": "diagnosis", "evidence": list(outer), "diagnosis": [{
        "claim": "Labels are drawn in another order than the images", "root_cause": "train.py shuffles labels alone.",
        "why_this_happens": "Each image meets the label of another one, so that nothing can be learned.",
        "location": f"train.py:{PLACE}", "failure_mode": "project.labels-shuffled", "severity": "high",
        "evidence": list(evidence), "will_change": ["The loss falls."],
        "will_not_fix": ["Labels that are wrong in the files."], "options": [option], **changes}]}


def proves(**changes: Any) -> Callable[[Question, Asker], dict[str, Any]]:
    """A lead that has measured its cause, once."""
    ids: list[str] = []

    def answer(question: Question, asker: Asker) -> dict[str, Any]:
        ids[:] = ids or [measured(asker)]
        return lead(ran(ids[0]), read_line(), **changes)

    return answer


def attack(quote: str, *, found: bool, relation: str = "supports", rival: str | None = None) -> Callable[..., Any]:
    """An adversary that ran a check with this output."""

    def answer(question: Question, asker: Asker) -> dict[str, Any]:
        item = {"claim": "as it was run", "supports": not found, "value": "", "quote": quote, "failure_mode": None,
                "place": measured(asker, quote, "adversary")}
        rivals = [{"claim": "Another cause", "failure_mode": rival, "would_show": "x", "evidence": item}]
        rivals = rivals if rival else []
        against = [] if rival else [{"observation": "pairs of the copy", "looked_for": True, "found": found,
                                     "evidence": item}]
        return {"relation": relation, "why": "it was run", "rivals": rivals, "disproofs": against}

    return answer


def run(work: Path, offline: OfflineInvestigator | None = None, **options: Any) -> Any:
    more = {"offline": offline} if offline is not None else {}
    symptom = options.pop("symptom", "accuracy stays at chance")
    return run_debug_session_sync(symptom, work, report=False, allow_run=True,
                                  investigator=ClaudeInvestigator(Settings(backend="claude"), **more), **options)
