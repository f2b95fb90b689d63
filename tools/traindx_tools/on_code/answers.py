"""Answers that are worked out once: an object keeps those to the questions about it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar


class Keeps:
    """Something that does not change any more, with what was answered about it."""

    @cached_property
    def answers(self) -> dict[Any, Any]:
        """By question, and by what else it was asked with."""
        return {}


Of = TypeVar("Of", bound=Keeps)
About = ParamSpec("About")
Answer = TypeVar("Answer")


def kept(question: Callable[Concatenate[Of, About], Answer]) -> Callable[Concatenate[Of, About], Answer]:
    """A question about an object, or about something in it, that is answered once. The answer is not to be changed."""

    @wraps(question)
    def asked(of: Of, /, *about: About.args, **named: About.kwargs) -> Answer:
        key = (question, *about)
        answers = of.answers
        if key not in answers:
            answers[key] = question(of, *about, **named)
        return answers[key]  # type: ignore[no-any-return]

    return asked


def answered(question: Callable[[Of], Answer], of: Keeps) -> Answer | None:
    """What a question was answered before; None where nobody has asked it."""
    found: Answer | None = of.answers.get((getattr(question, "__wrapped__", question),))
    return found
