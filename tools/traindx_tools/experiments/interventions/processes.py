"""How many processes train."""

from __future__ import annotations

import re
import shlex
import socket
from collections.abc import Sequence
from pathlib import Path

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.interventions.intervention import ANY, BEFORE, Intervention
from traindx_tools.experiments.interventions.writing.program import CallText, Program
from traindx_tools.experiments.interventions.writing.shell import spliced
from traindx_tools.experiments.place import Prepared

_MODULES = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "deepspeed",
            "deepspeed.launcher.runner")
_LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "mpirun", "mpiexec", "srun")
_INTERPRETER = re.compile(r"python[\d.]*")


def _single(change: Change, command: str, workspace: Path) -> Prepared:
    program = Program(command, workspace)
    call = program.call
    if call is None:
        raise BadUsage(f"where {command!r} starts its script is not written in it.")
    words = [w.text for w in call.words]
    at = _launcher(words, call.script_at)
    if at is None:
        raise BadUsage("the command starts one process by itself: no torchrun, accelerate, deepspeed, mpirun or srun "
                       f"stands before {words[call.script_at]}. Processes that the program starts are set by its own "
                       "option: set:KEY=1.")
    python = _python(words, at)
    script = [words[call.script_at]] if words[call.script_at - 1] not in ("-m", "--module") else [
        "-m", words[call.script_at]]
    text = _rewritten(call, at, [python, *script])
    return Prepared(text if not call.file else command, _alone(),
                    {call.file: text.encode()} if call.file else {})


def _launcher(words: Sequence[str], script_at: int) -> int | None:
    """Where the launcher's own call begins."""
    for at, word in enumerate(words[:script_at]):
        if Path(word).name in _LAUNCHERS:
            return at
        if word == "-m" and words[at + 1] in _MODULES and at + 1 < script_at:
            return at - 1
    return None


def _python(words: Sequence[str], at: int) -> str:
    """The interpreter that the command names, else `python` (beside a torchrun that has a path)."""
    named = next((w for w in words if _INTERPRETER.fullmatch(Path(w).name)), None)
    if named:
        return named
    folder = Path(words[at]).parent
    return str(folder / "python") if str(folder) != "." else "python"


def _rewritten(call: CallText, at: int, new: Sequence[str]) -> str:
    first, last = call.words[at], call.words[call.script_at]
    return spliced(call.text, first.start, last.end, " ".join(map(shlex.quote, new)))


def _alone() -> dict[str, str]:
    """What a launcher tells its processes, for one: programs that ask for the group's variables find them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1", "GROUP_RANK": "0",
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


INTERVENTIONS = (
    Intervention(
        "single-process", "one process instead of several",
        changes="The launcher (torchrun, `-m torch.distributed.run`, accelerate, deepspeed, mpirun, srun) is taken out "
                "of the command; the script is started alone, as rank 0 of 1.",
        keeps="The script and its arguments.",
        shows="Where a hang, a divergence or a difference goes, it needs several ranks: a collective that one of them "
              "misses, gradients that are not averaged, data that all read alike, a rate that is scaled by their "
              "number.",
        cannot_tell="Which of these. The global batch is smaller, and so is what depends on it. Settings of the "
                    "launcher (mixed precision of accelerate, DeepSpeed's file) are gone with it.",
        holds=BEFORE, frameworks=(ANY,), horizon=30, preparation=_single),
)
