"""The session's fixer: the fix author writes a patch within the approved option, the reviewer tries to break it.

Nothing is written here. What comes out are edits; the session refuses every one outside of the approved files and
lines, and applies the rest itself. A patch that the reviewer blocks with a checked line goes back once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from traindx import gate
from traindx.agents import load_agents
from traindx.investigators.bench.bench import Bench
from traindx.investigators.claude_code import concluding, prompts
from traindx.investigators.claude_code.answers import Objection, Option, Patch, Review, read
from traindx.investigators.claude_code.askers import asker_of
from traindx.investigators.claude_code.asking import Asker
from traindx.investigators.claude_code.checking import Checker, place_of
from traindx.investigators.claude_code.conversation import Question
from traindx.investigators.claude_code.instruments import names
from traindx.model import Diagnosis, Fix, ProposedEdit
from traindx.notices import Hear, nobody
from traindx.policy import Scope
from traindx.proposal import fix_text
from traindx.safe_text import line
from traindx.session_folder import SessionFolder, folders, read_session
from traindx.settings import Settings
from traindx.workspace import SCRATCH
from traindx_tools.errors import TraindxError

ROUNDS = 2
"""How often the author writes: once, and once more after objections that stand."""

BLOCKING = frozenset({"direct", "circumstantial"})


class NoPatch(TraindxError):
    """There is no patch that may be applied; the message says why and how the fix can be made by hand."""


@dataclass
class ClaudeFixer:
    """Turns the instructions of an approved option into edits; a `turn.Fixer`."""

    workspace: Path
    settings: Settings
    hear: Hear = nobody
    _asker: Asker | None = field(default=None, init=False)

    async def __call__(self, diagnosis: Diagnosis, option: Fix) -> tuple[ProposedEdit, ...]:
        """The edits. Raises NoPatch."""
        self._asker = self._asker_of(diagnosis)
        objections = ""
        for _ in range(ROUNDS):
            edits, made = await self._written(diagnosis, option, objections)
            review = await self._reviewed(diagnosis, made)
            standing = self._standing(review)
            if review.verdict != "reject" and not standing:
                return edits
            objections = "\n".join(f"{o.kind} at {o.place}: {o.claim}. {o.required_change}" for o in standing) \
                or review.chain
        raise NoPatch(f"the reviewer rejects the patch: {line(objections, 600)}. {_BY_HAND}")

    async def _written(self, diagnosis: Diagnosis, option: Fix,
                       objections: str) -> tuple[tuple[ProposedEdit, ...], Fix]:
        agent = load_agents()["fix-author"]
        patch = await self._asked(prompts.author(agent, str(self.workspace), diagnosis, option, objections,
                                                 self.settings.model), Patch)
        assert isinstance(patch, Patch), "_asked reads this form"
        written = next((o for o in patch.options if o.option == option.option), None)
        if not patch.diagnosis_holds or written is None or not written.edits:
            why = "; ".join(patch.refused) or "the author gave no edit for the approved option"
            raise NoPatch(f"no patch: {line(why, 600)}. {_BY_HAND}")
        edits = _edits(written)
        refused = gate.outside(option, edits)
        if refused:
            raise NoPatch(f"the author's patch leaves the approval: {'; '.join(refused)}. {_BY_HAND}")
        return edits, option.model_copy(update={"edits": edits, "instructions": ()})

    async def _reviewed(self, diagnosis: Diagnosis, made: Fix) -> Review:
        agent = load_agents()["fix-reviewer"]
        changes = "\n".join(f"{e.path}:{e.line}-{e.end_line}\n- {e.original}\n+ {e.replacement}" for e in made.edits)
        review = await self._asked(prompts.reviewer(agent, str(self.workspace), diagnosis,
                                                    f"{fix_text(made)}\n{changes}", self.settings.model), Review)
        assert isinstance(review, Review), "_asked reads this form"
        return review

    async def _asked(self, question: Question, form: type[Patch] | type[Review]) -> Patch | Review:
        assert self._asker is not None, "a call begins with the session's asker"
        reply = await self._asker.ask(question, self.settings.seconds_each)
        if reply.answer is None:
            raise NoPatch(f"{question.who} gave no answer ({reply.failure}). {_BY_HAND}")
        answer = read(form, reply.answer)
        if isinstance(answer, str):
            raise NoPatch(f"{question.who} gave no answer in the asked form ({answer}). {_BY_HAND}")
        return answer

    def _standing(self, review: Review) -> tuple[Objection, ...]:
        """Objections that block and whose quoted line really stands there; the others are opinions."""
        checker = Checker(Scope(self.workspace))
        out = []
        for o in review.objections:
            place = place_of(o.place)
            if o.blocks and o.strength in BLOCKING and place and checker.quote_missing(*place, o.quote) is None:
                out.append(o)
        return tuple(out)

    def _asker_of(self, diagnosis: Diagnosis) -> Asker:
        scratch = session_of(self.workspace, diagnosis)
        scope = Scope(self.workspace, mcp_read_only=frozenset(names()))
        return asker_of(self.workspace, self.settings, scope, scratch, self.hear, phase="gate",
                        bench=Bench(self.workspace, scratch))


_BY_HAND = "Resume the session without a fixer (`traindx resume`) to make the approved change by hand"


def _edits(written: Option) -> tuple[ProposedEdit, ...]:
    try:
        return concluding.edits_of(written)
    except ValueError as error:
        raise NoPatch(f"the author's patch contradicts itself: {line(str(error), 400)}. {_BY_HAND}") from error


def session_of(workspace: Path, diagnosis: Diagnosis) -> Path:
    """The folder of the newest session whose approved diagnosis this is. Raises NoPatch."""
    for folder in reversed(folders(workspace / SCRATCH)):
        try:
            session = read_session(SessionFolder(folder))
        except (TraindxError, OSError):
            continue  # another session's damage is not this one's concern
        if session.approved and session.diagnosis == diagnosis:
            return folder
    raise NoPatch("no session of this workspace waits for a fix of this diagnosis")
