"""What a lead and an adversary do in `hard_cases`: probes that are really run, and answers that cite them."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from answers_for import doubt, said
from hard_cases import line_of, proof
from scripted_api import Use, Wait

LEAD = "ml-debugger-specialist"
PROBE = "mcp__traindx__run_probe"
Answering = Callable[[Mapping[str, Any]], Any]
OUTPUT = re.compile(r"\[(P\d{3})\]")
CITED = re.compile(r"place\W+(P\d{3})")


def heard(body: Mapping[str, Any]) -> str:
    """Everything that the conversation holds."""
    return json.dumps(body["messages"])


def user_texts(body: Mapping[str, Any]) -> list[str]:
    """What was said to the model, tool results aside, in order."""
    texts = []
    for m in body["messages"]:
        content = m["content"] if isinstance(m["content"], list) else [{"type": "text", "text": m["content"]}]
        texts += [b["text"] for b in content if m["role"] == "user" and b.get("type") == "text"]
    return texts


def asked_now(body: Mapping[str, Any]) -> str:
    """Which message is being answered: "look", "facts", "guess", "news" or "objection"."""
    last = next((t for t in reversed(user_texts(body)) if not t.startswith("<")), "")
    for key, mark in (("objection", "# An adversary objects"), ("news", "# What came since"),
                      ("guess", "# The engine's guess"), ("facts", "# Facts")):
        if mark in last:
            return key
    return "look"


def since(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Tool calls of the model since that message."""
    calls: list[dict[str, Any]] = []
    for m in body["messages"]:
        content = m["content"] if isinstance(m["content"], list) else []
        if m["role"] == "user" and (isinstance(m["content"], str) or any(
                b.get("type") == "text" and not b["text"].startswith("<") for b in content)):
            calls = []
        calls += [b for b in content if b.get("type") == "tool_use"]
    return calls


def held_back(script: Callable[[Mapping[str, Any]], Any], until: threading.Event) -> Answering:
    """The same script, its steps given when that happens (or after some seconds)."""
    return lambda body: Wait(script(body), until)


def last_output(body: Mapping[str, Any]) -> str:
    """The id of the last output in the conversation."""
    found = OUTPUT.findall(heard(body)) or CITED.findall(heard(body))
    return str(found[-1]) if found else "P000"


def conversation(**answers: Sequence[Any] | Callable[[Mapping[str, Any]], Sequence[Any]]) -> Answering:
    """A script by what is asked: the steps for each, the last an answer; a function makes them of the request."""

    def step(body: Mapping[str, Any]) -> Any:
        steps = answers.get(asked_now(body), answers.get("otherwise", ()))
        known = steps(body) if callable(steps) else steps
        done = len([c for c in since(body) if c["name"] != "StructuredOutput"])
        return known[min(done, len(known) - 1)]

    return step


def open_answer(**more: Any) -> Use:
    """The lead does not know yet."""
    return said(LEAD, status="needs_data", **more)


def cause(work: Path, text: str, mode: str, *evidence: dict[str, Any], outer: Sequence[dict[str, Any]] = (),
          edit: str | None = None) -> Use:
    """The lead names the line with this text as the cause."""
    place = line_of(work, text)
    option = {"option": "A", "summary": "Put it right at its place", "metric": "loss stays finite and falls",
              "verify": "python train.py", "otherwise": "look at the data again",
              "change": "" if edit is not None else "take the fault out of this line",
              "edits": [] if edit is None else [{"path": "train.py", "line": place, "end_line": place, "original": text,
                                                 "replacement": edit}]}
    return said(LEAD, status="diagnosis", evidence=list(outer), diagnosis=[{
        "claim": f"The line {text.strip()} breaks the data", "root_cause": f"train.py:{place} breaks the data.",
        "why_this_happens": "What the model is fed is wrong from the first batch that holds it.",
        "location": f"train.py:{place}", "failure_mode": mode, "severity": "high", "evidence": list(evidence),
        "will_change": ["The loss falls."], "will_not_fix": ["Labels that are wrong in the files."],
        "options": [option]}])


def checks(quote: str, code: str, *, found: bool, relation: str = "supports", **more: Any) -> Answering:
    """An adversary that runs this code and reports what its output says."""

    def step(body: Mapping[str, Any]) -> Any:
        if not since(body):
            return Use(PROBE, {"code": code})
        item = proof(last_output(body), quote, "what the check showed", failure_mode=None)
        return doubt(relation, disproofs=[{"observation": "the check of the cause", "looked_for": True, "found": found,
                                           "evidence": item}], **more)

    return step
