"""What lead, specialists and adversary say of `examples/numpy-lr`, true and false, and how a person decides: for whole
sessions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from answers_for import doubt, said, specialist
from hard_cases import MEASURE_CLIP
from lead_scripts import LEAD, PROBE, conversation, last_output, open_answer, since
from scripted_api import Several, Use

from traindx.model import Decision, Diagnosis

VERIFY = f"{sys.executable} train.py"
LINE = '    prob = np.clip(prob, EPS, 1.0 - EPS)'
FIXED = '    prob = np.clip(prob, np.float32(1e-7), np.float32(1.0 - 1e-6))'
SPECIALISTS = ("failure-mode-researcher", "data-flow-tracer", "torch-logic-auditor")
CLIPPED = "largest after the clip 1.0 its distance from one 0.0"


def line_of(work: Path, text: str) -> int:
    return (work / "train.py").read_text().split("\n").index(text) + 1


def claim(work: Path, **changes: Any) -> dict[str, Any]:
    return {"claim": "1.0 - 1e-12 rounds to 1.0 in float32, so the clip keeps no distance from one", "supports": True,
            "value": "", "place": f"train.py:{line_of(work, LINE)}", "quote": LINE.strip(),
            "failure_mode": "loss.log-of-zero", **changes}


def sends(*agents: str) -> Several:
    """The lead sends these, side by side."""
    return Several([Use("Agent", {"subagent_type": a, "description": "look", "prompt": f"{a}: look at train.py"})
                    for a in agents])


def measures(body: Mapping[str, Any]) -> Any:
    """An adversary that repeats the measurement and finds nothing against it."""
    if not since(body):
        return Use(PROBE, {"code": MEASURE_CLIP})
    item = {"claim": "the clip leaves no distance", "supports": True, "value": "", "place": last_output(body),
            "quote": CLIPPED, "failure_mode": None}
    return doubt(disproofs=[{"observation": "a probability of one that the clip keeps away from one",
                             "looked_for": True, "found": False, "evidence": item}])


def scripts(work: Path, **changes: Any) -> dict[str, Any]:
    place = line_of(work, LINE)
    edit = {"path": "train.py", "line": place + 1, "end_line": place, "original": "", "replacement": FIXED}
    option = {"option": "B", "summary": "Clip with constants that float32 tells from zero and one", "edits": [edit],
              "instructions": [], "metric": "loss stays finite", "verify": VERIFY, "otherwise": "look at the logits",
              "fragile": ""}
    return {
        LEAD: conversation(facts=[sends(*SPECIALISTS), open_answer()], otherwise=[open_answer()]),
        "failure-mode-researcher": specialist("failure-mode-researcher", status="found", answer="documented",
                                              triangulation=[
            {"finding": "a clip whose bound rounds to one", "url": "loss.log-of-zero", "location": f"train.py:{place}",
             "match": "exact", "impact": "critical"}]),
        "data-flow-tracer": specialist(
            "data-flow-tracer", Use("mcp__traindx__instrument", {"name": "audit_code", "arguments": {
                "paths": ["train.py"]}}), Use("Read", {"file_path": str(work / "train.py")}),
            status="found", answer="the clip does nothing", evidence=[
                claim(work), claim(work, quote="this text is nowhere"), claim(work, place="train.py:99999"),
                claim(work, value="0.731"), claim(work, place="https://example.org/never-fetched")]),
        "torch-logic-auditor": specialist("torch-logic-auditor", status="not_found", answer="numpy only"),
        "adversary": measures,
        "fix-author": [said("fix-author", options=[option])],
        "fix-reviewer": [said("fix-reviewer", verdict="accept", chain="cut at the clip")],
        **changes,
    }


def deciding(*answers: str) -> Callable[[Diagnosis], Decision | None]:
    """Decides as told, one answer after the other: "revise", "A", "B" or "later"."""
    left = iter(answers)

    def approve(diagnosis: Diagnosis) -> Decision | None:
        said = next(left)
        if said == "later":
            return None
        if said == "revise":
            return Decision.revise(diagnosis, "look closer, by the whole protocol")
        return Decision(verdict="approve", diagnosis_digest=diagnosis.digest(), option="A" if said == "A" else "B")

    return approve
