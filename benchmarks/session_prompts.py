"""What a whole session with a lead sends that is the same in every session, in tokens of 3.6 characters.

    python benchmarks/session_prompts.py

A whole session goes from the first request to an approved and verified fix: the lead with three specialists, the
adversary, and where the fix was told in words the author and the reviewer. Of each conversation its tools, its system
text, its form and all that we say in it count once, as they are sent; what all share is counted in each of them (the
API reads it from its cache). Not counted: the case, evidence, diagnosis and patch, which stand between <data> marks,
and with the CLI what is the CLI's own (its tools Agent and Read, its words about the machine).
"""

from __future__ import annotations

import json
import math
import re
import signal
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traindx.agents import AFTER_APPROVAL, LEAD, SPECIALISTS, load_agents
from traindx.answer_schema import shape
from traindx.investigators.base import Case
from traindx.investigators.bench import bench
from traindx.investigators.bench.bench import EXPERIMENT, Bench, full_name
from traindx.investigators.claude_code import prompts
from traindx.investigators.claude_code.asking import SEND
from traindx.investigators.claude_code.conversation import Helper, Question
from traindx.investigators.messages_api.asking import FORM
from traindx.investigators.messages_api.toolbox import Toolbox
from traindx.model import Diagnosis, Fix, Symptom
from traindx.policy import Scope

CHARACTERS_A_TOKEN = 3.6
MOST = 12_000
TYPICAL = ("failure-mode-researcher", "data-flow-tracer", "torch-logic-auditor")
"""Three of the six: those whom the delegation table sends for a loss that turns to NaN in PyTorch."""
WAYS = ("api", "claude")
WORKSPACE = "/home/person/project"
_DATA = re.compile(r"<data>.*?</data>", re.DOTALL)


@dataclass(frozen=True)
class Conversation:
    """Who, and what is sent in it."""

    who: str
    question: Question
    later: tuple[str, ...] = ()
    """Further messages of ours."""
    form: bool = True
    """Whether the form of the answer is sent beside the prompt."""


def tokens(sent: Any) -> int:
    """Estimated tokens of what a request holds."""
    return math.ceil(len(json.dumps(sent, ensure_ascii=False, separators=(",", ":"))) / CHARACTERS_A_TOKEN)


def conversations() -> list[Conversation]:
    """All of a whole session."""
    agents, nothing = load_agents(), ""
    case = Case(Path(WORKSPACE), Path(WORKSPACE), Symptom(observed="x"), allow_run=True)
    diagnosis = Diagnosis.model_construct(**dict.fromkeys(
        ("symptom", "root_cause", "why_this_happens", "location", "failure_mode"), nothing), evidence=())
    option = Fix.model_construct(option="A", summary=nothing, edits=(), instructions=())
    all_tools = prompts.tools_of(True)
    theirs = tuple(t for t in all_tools if t != full_name(EXPERIMENT))
    helpers = {n: prompts.helper(agents[n], WORKSPACE, nothing, theirs, False) for n in SPECIALISTS}
    lead = agents[LEAD]
    author, reviewer = (agents[n] for n in AFTER_APPROVAL)
    return [
        Conversation(LEAD, Question("lead", prompts.frame(WORKSPACE), prompts.first_look(lead, case),
                                    lead.output_schema, (*all_tools, SEND), helpers=tuple(helpers.values())),
                     (prompts.with_facts("x", ()), prompts.with_guess("x"))),
        *(Conversation(n, _of_helper(helpers[n]), form=False) for n in TYPICAL),
        Conversation("adversary", prompts.adversary(case, diagnosis, all_tools, nothing, 1)),
        Conversation(author.name, prompts.author(author, WORKSPACE, diagnosis, option, nothing, nothing)),
        Conversation(reviewer.name, prompts.reviewer(reviewer, WORKSPACE, diagnosis, nothing, nothing))]


def _of_helper(helper: Helper) -> Question:
    return Question(helper.name, helper.system, "", helper.schema, helper.tools)


def counted(way: str) -> dict[str, int]:
    """Tokens by conversation, over the API ("api") or with the CLI ("claude")."""
    return {c.who: tokens({"system": c.question.system, "tools": _tools(c, way), "said": _said(c, way)})
            for c in conversations()}


def _said(c: Conversation, way: str) -> str:
    form = f"{FORM}{shape(c.question.schema)}" if way == "api" and c.form else ""
    return _DATA.sub("", "\n\n".join((c.question.prompt, *c.later, form)))


def _tools(c: Conversation, way: str) -> Sequence[Mapping[str, Any]]:
    if way == "api":
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder)
            return Toolbox(c.question, work, Scope(work), "gather", lambda *_: None, Bench(work, work)).definitions
    ours = [{"name": full_name(n), **d} for n, d in bench.definitions().items() if full_name(n) in c.question.tools]
    return [*ours, {"name": "StructuredOutput", "input_schema": c.question.schema}] if c.form else ours


def main() -> int:
    """Prints both ways; 1 where one is above the limit."""
    both = {way: counted(way) for way in WAYS}
    print(f"{'fixed prompts, in tokens':28}{'over the API':>14}{'with the CLI':>14}")
    for who in both["api"]:
        print(f"{who:28}" + "".join(f"{both[way][who]:>14,}" for way in WAYS))
    sums = {way: sum(both[way].values()) for way in WAYS}
    print(f"{f'whole session (limit {MOST:,})':28}" + "".join(f"{sums[way]:>14,}" for way in WAYS))
    without = {way: sum(n for who, n in both[way].items() if who not in AFTER_APPROVAL) for way in WAYS}
    print(f"{'without author and reviewer':28}" + "".join(f"{without[way]:>14,}" for way in WAYS))
    return int(max(sums.values()) >= MOST)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    raise SystemExit(main())
