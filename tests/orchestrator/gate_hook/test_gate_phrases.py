"""What a person's prompt decides: the listed phrases alone, and nothing that only resembles one or goes on after it.

The prompts stand in `prompts.json`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from traindx.gate_hook.phrases import Said, almost, said

PROMPTS: dict[str, Any] = json.loads(Path(__file__).with_name("prompts.json").read_text())


@pytest.mark.parametrize(("prompt", "option"), PROMPTS["approve"])
def test_an_approval_is_the_whole_prompt(prompt: str, option: str) -> None:
    assert said(prompt) == Said("approve", option)


@pytest.mark.parametrize(("prompt", "kind"), PROMPTS["others"])
def test_a_phrase_decides(prompt: str, kind: str) -> None:
    assert said(prompt) == Said(kind)


def test_an_approach_is_reopened_with_a_reason() -> None:
    assert said("reopen the approach because the log was of another run") == Said(
        "reopen", "", "the log was of another run")


@pytest.mark.parametrize("prompt", PROMPTS["none"])
def test_a_negation_a_condition_or_any_further_text_decides_nothing(prompt: str) -> None:
    assert said(prompt) is None


def test_a_long_prompt_opens_at_most() -> None:
    assert said("approve A" + " " * 5_000 + "not") is None
    assert said("/traindx:ml-debug " + "x" * 5_000) == Said("open")


@pytest.mark.parametrize(("prompt", "is_one"), [("yes", True), ("go ahead", True), ("ok, do it", True), ("A", True),
                                                ("LGTM!", True), ("approve A, but not yet", True),
                                                ("why is it NaN?", False), ("yes " * 100, False)])
def test_what_sounds_like_an_approval_is_noticed(prompt: str, is_one: bool) -> None:
    assert almost(prompt) is is_one
