"""What `approve`, `reject`, `revise` and `resume` share: a decision on the diagnosis that waits, and going on."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from traindx.at_terminal import finish, resumed
from traindx.gate import ApprovalRefused
from traindx.model import Decision
from traindx.session import NotWaiting, decide, read_result
from traindx.session_result import SessionResult


def decision_on(session: str, workspace: str | None, verdict: Literal["approve", "reject", "revise"], *,
                option: str | None = None, digest: str | None = None, by: str = "user",
                comment: str = "") -> SessionResult:
    """Records a person's decision on the diagnosis that waits.

    Raises NotWaiting where none waits and ApprovalRefused where it is another one than `digest` names.
    """
    where = Path(workspace) if workspace is not None else None
    waiting = read_result(session, workspace=where)
    if waiting.digest is None:
        raise NotWaiting(f"session {waiting.session} waits for no decision: {waiting.reason}")
    if digest is not None and not waiting.digest.startswith(digest):
        raise ApprovalRefused(f"the diagnosis has changed since you read it: its digest is {waiting.digest[:12]}, you "
                              f"named {digest[:12]}. Read it again with `traindx show {waiting.session}`.")
    decision = Decision.model_validate({"verdict": verdict, "diagnosis_digest": waiting.digest, "option": option,
                                        "by": by, "comment": comment})
    return decide(waiting.folder, decision)


def go_on(result: SessionResult, wait: bool) -> int:
    """Resumes the session unless it is to wait; shows where it stands and returns the exit code."""
    if wait:
        return finish(result, approve=True)
    return finish(resumed(result.folder, ask=True), approve=True)
