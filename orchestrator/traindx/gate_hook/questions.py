"""The question tool at the gate: only the gate's own question decides, and it names the diagnosis by its digest.

A question of the agent that offers an approval is replaced by the gate's own before the person sees it: what the person
reads is what the gate read, option by option. Answers to any other question decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from traindx.gate_hook import deciding
from traindx.gate_hook.answers import SILENT, Answer, Event, Place
from traindx.gate_hook.state import Option, Shown, State
from traindx.unseen import escaped

_NOT_YET = {"label": "not yet", "description": "nothing is changed"}


def shown_now(event: Event, state: State) -> Shown | None:
    """The complete diagnosis that stands in this conversation: the last that was shown."""
    from traindx.gate_hook.presented import looks_like_one, read_diagnosis
    from traindx.gate_hook.transcript import last_said

    conversation = str(event.get("session_id") or "")
    text = last_said(str(event.get("transcript_path") or ""))
    if looks_like_one(text):
        found = read_diagnosis(text, state.workspace, conversation)
        return found if isinstance(found, Shown) else None
    return state.shown if state.shown is not None and state.shown.conversation == conversation else None


def question_of(shown: Shown) -> str:
    """The gate's own question about a diagnosis."""
    cause = escaped(shown.cause.strip("*_#> "), keep="")
    return f"traindx gate, diagnosis {shown.digest}: {cause} Which change may be made?"


def _choice(option: Option) -> dict[str, str]:
    verify = f"; verified with {escaped(option.verify[0])}" if option.verify else ""
    return {"label": f"approve {option.option}", "description": f"changes {deciding.named(option)}{verify}"}


def before_question(event: Event, state: State, at: Place) -> Answer:
    """A question that would approve becomes the gate's own; any other passes as it is."""
    given = event.get("tool_input")
    arguments = given if isinstance(given, Mapping) else {}
    if arguments.get("answers"):
        return Answer(deny="traindx gate: a question that brings its own answers asks nobody. Instead: ask without "
                           "`answers`")
    if not any("approv" in text.lower() for text in _texts(arguments)):
        return SILENT
    shown = shown_now(event, state)
    if shown is None or "agent_id" in event:
        return Answer(deny="traindx gate: no complete diagnosis was shown in this conversation, so there is nothing to "
                           "approve. Instead: show it in Gate 4 form, then ask")
    with at.store.locked():
        at.store.write(state._replace(shown=shown))
    question = {"question": question_of(shown), "header": "Gate 4", "multiSelect": False,
                "options": [*map(_choice, shown.options), _NOT_YET]}
    return Answer(arguments={"questions": [question]})


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def after_question(event: Event, state: State) -> tuple[State, str] | None:
    """The person's answer to the gate's own question about the diagnosis that is shown now."""
    from traindx.gate_hook.phrases import said

    response: Any = event.get("tool_response")
    answers = response.get("answers") if isinstance(response, Mapping) else None
    shown = state.shown
    if "agent_id" in event or not isinstance(answers, Mapping) or shown is None:
        return None
    if shown.conversation != str(event.get("session_id") or ""):
        return None
    decision = said(str(answers.get(question_of(shown)) or ""))
    if decision is None or decision.kind != "approve" or not decision.option:
        return None
    return deciding.approve(state, shown, decision.option, "the person's answer to the gate's question")
