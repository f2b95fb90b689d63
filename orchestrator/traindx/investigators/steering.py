"""What a person says at the gate, as something that steers: topics that they name or exclude, and files that they name.

A person's words are a hint and no evidence: they move a failure mode by `HINT` log-odds, less than one line of code
does, and the diagnosis says what they did. So somebody who knows better tips the balance where it is open, and nobody
talks a proven cause away: for that there is `reject`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from traindx.investigators.claude_code import weighing
from traindx.model import Hypothesis
from traindx.policy import Scope, readable, resolve
from traindx.safe_text import line
from traindx_tools.catalog.catalog import FailureMode
from traindx_tools.examine import Examination
from traindx_tools.triage import CONFIDENT

HINT = 1.2

SAID = ("at the gate: ", "rejected: ", "with the data: ")
"""How the state machine begins what a person said, among what the session was sent back with."""

NOTHING_SAID = "gave no comment"
"""What the state machine notes where somebody decided without a word."""

TOPICS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"learning.?rates?|\blrs?\b|schedul\w*|warm.?up|decay(ed|ing)? too", ("lr",)),
    (r"\boptimi[sz]ers?\b|weight decay|\badamw?\b|\bsgd\b|momentum", ("opt",)),
    (r"\blabels?\b|annotation", ("label", "data")),
    (r"\bdata(set)?s?\b|batch(es)?\b(?! ?norm)|data.?load\w*|preprocess\w*|augment\w*|tokeni[sz]\w*|collat\w*|"
     r"shuffl\w*",
     ("data", "loader", "label")),
    (r"\bamp\b|mixed precision|autocast|grad.?scaler|loss scal\w*", ("amp", "num")),
    (r"\b(fp|float|bf)16\b|half precision|\bbf16\b|overflow\w*|underflow\w*|epsilons?\b|\bprecision\b",
     ("num", "amp", "dtype")),
    (r"batch.?norm\w*|running (mean|var\w*|statistics)", ("bn", "norm")),
    (r"\bloss (function|term|weight)s?\b|\bobjective\b|criterion|cross.?entropy|softmax|\blog\(", ("loss",)),
    (r"\bgradients?\b|backprop\w*|backward\b|vanish\w*|explod\w*", ("grad", "graph")),
    (r"\bclip\w*", ("clip", "grad")),
    (r"accumulat\w*", ("accum",)),
    (r"checkpoint\w*|state.?dict|\bresum\w*|restart\w*", ("ckpt", "resume")),
    (r"\beval(uation)?\b|validation|metric\b|\btest set\b", ("eval",)),
    (r"\bmodel\b|architecture|layers?\b|activation\w*|\binit(iali[sz]ation)?\b", ("model", "init", "act")),
    (r"memory|\boom\b|\bleak\w*", ("mem",)),
    (r"\bddp\b|\bfsdp\b|distributed|\branks?\b|nccl|all.?reduce|multi.?gpu", ("dist", "hang")),
    (r"\bjax\b|\bjit\b|vmap|scan\b|tracer", ("jax",)),
    (r"overfit\w*|regulari[sz]\w*|too (small|few) (a )?data", ("fit",)),
    (r"codebook\w*|\bvq\b|quanti[sz]er", ("vq",)),
    (r"reward\w*|advantage\w*|\bkl\b|\bpolic(y|ies)\b|\bppo\b|\bgrpo\b", ("rl",)),
    (r"\bversions?\b|upgrad\w*|\bdriver\b|\bcuda\b|environment", ("env", "cuda", "device")),
)
"""Words of a person, and the families of failure modes (the first part of an id) that they are about."""

_CLAUSE = re.compile(r"[.;,!?\n]+|\bbut\b|\bbecause\b|\bsince\b", re.IGNORECASE)
_DENIED = re.compile(
    r"\bnot\b|n't\b|\bno\b|\bnever\b|rule[ds]? out|exclude[ds]?|unchanged|already (checked|tried|verified)|"
    r"\bcannot be\b|\b(is|are|was|were) (fine|right|ok|correct)\b|\bnothing to do with\b|"
    r"\balways (?:been|like|there|so|the same)\b|\ball along\b", re.IGNORECASE)
_NOT_IT = re.compile(
    r"(?:\bnot|n't|\bnever|\bno)\s+(?:\w+\s+){0,2}?(?:problem|cause|reason|culprit|issue|fault|it|to blame)\b|"
    r"\b(?:is|are|was|were) (?:fine|right|ok|correct)\b|\bnothing to do with\b|\bcannot be\b|rule[ds]? out|"
    r"exclude[ds]?|already (?:checked|tried|verified)|\balways (?:been|like|there|so|the same)\b|\ball along\b",
    re.IGNORECASE)
"""A clause that says of what it names that it is not at fault; "is never called" says what the code does."""
_BLAMES = re.compile(
    r"\b(?:at fault|to blame|culprit|suspect\w*|caused? by|look (?:at|into)|check)\b|"
    r"\b(?:the|my|your|real) (?:problem|cause|reason|issue)\b|\bi (?:think|believe|bet|guess)\b|"
    r"\bit(?:'s| is| was| must be)\b", re.IGNORECASE)
"""A clause that says what is at fault: beside one, what other clauses speak of is only mentioned."""
_YES = re.compile(r"^\W*(?:yes|yep|right|correct|agreed?|exactly|true)\b|\b(?:this|that) is it\b|\bthat's it\b|"
                  r"\bi agree\b", re.IGNORECASE)
_NO = re.compile(r"^\W*(?:no|nope|wrong)\b|\bnot (?:it|that|this|the (?:cause|problem|reason))\b|\bi disagree\b",
                 re.IGNORECASE)
_NAME = re.compile(r"\b[A-Za-z]\w*_\w+\b|\b[A-Za-z]\w+(?=\()")
"""A name of the code or of a library, as a person types it."""
_NEGATED = re.compile(r"\b(?:never|not|no)\s+\w+", re.IGNORECASE)
_WISH = re.compile(
    r"^\s*(?:and |please |just |better )*(?:keep|set|use|make|move|replace|leave|put|add|remove|drop|lower|raise|"
    r"reduce|increase|change|prefer)\b|\boption [AB]\b|\binstead\b|\brather than\b|\bthe fix\b", re.IGNORECASE)
"""A clause about what should be changed, and not about what is wrong."""
_FILE = re.compile(r"[\w./-]+\.(?:py|ipynb|log|txt|csv|json|jsonl|ya?ml|toml|out|err)\b")


@dataclass(frozen=True)
class Steer:
    """What one comment asks for. `named` and `denied` are beginnings of failure-mode ids, or whole ids."""

    comment: str
    named: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()
    files: tuple[Path, ...] = field(default=())
    wish: bool = False
    """Whether it says something about the fix: that moves no cause, and is shown with the fix."""
    mentioned: frozenset[str] = frozenset()
    """Failure modes about a name of the code that it holds, without saying whether that is at fault."""
    agrees: bool | None = None
    """Yes or no to what was shown, where it names nothing else; that moves no cause."""
    found: str = ""
    """What the record shows of what it says was seen, in words; "" before anybody looked."""

    @property
    def claims(self) -> bool:
        """Whether it says what is at fault or is not: that is a hint, and no symptom that a cause has to explain."""
        return bool(self.named or self.denied)

    def shift(self, mode: str) -> float:
        """Log-odds for one failure mode."""
        family = mode.split(".")[0]
        here = HINT if mode in self.named or family in self.named else 0.0
        return here - (HINT if mode in self.denied or family in self.denied else 0.0)


def comments(feedback: Iterable[str]) -> tuple[str, ...]:
    """What a person said, each once, without what the session itself noted."""
    said = (f[len(s):].strip() for f in feedback for s in SAID if f.startswith(s))
    return tuple(dict.fromkeys(c for c in said if c.strip(".… ") and not c.endswith(NOTHING_SAID)))


def steers(feedback: Iterable[str], workspace: Path, modes: Mapping[str, FailureMode]) -> tuple[Steer, ...]:
    """The comments, read. `modes`: those that the words may name, by id or by a name of the code in their claim."""
    return tuple(_read(c, workspace, modes) for c in comments(feedback))


def _read(comment: str, workspace: Path, modes: Mapping[str, FailureMode]) -> Steer:
    named, denied = set[str](), set[str]()
    clauses = _CLAUSE.split(comment[:4000])
    wishes = [c for c in clauses if _WISH.search(c)]
    about = [(clause, topics) for clause in clauses if clause not in wishes and (topics := _topics(clause))]
    blaming = [c for c, _ in about if _BLAMES.search(c) and not _DENIED.search(c)]
    for clause, topics in about:
        if _DENIED.search(clause):
            denied |= topics
        elif not blaming or clause in blaming:
            named |= topics
    by_name = {verdict: {m for c in clauses for m in _of_names(c, modes, verdict)} for verdict in ("not it", "it", "")}
    whole = {m for m in modes if re.search(rf"(?<![\w.-]){re.escape(m)}(?![\w-])", comment)}
    refused = {m for m in whole if _DENIED.search(comment[:comment.find(m)][-40:])}
    refused |= by_name["not it"]
    whole |= by_name["it"] - by_name["not it"]
    yes, no = _YES.search(comment), _NO.search(comment)
    silent = not (named or denied or whole or refused or by_name[""])
    return Steer(comment, frozenset(named - denied | whole - refused), frozenset(denied | refused),
                 tuple(_files(comment, workspace)), bool(wishes), frozenset(by_name[""] - whole - refused),
                 (no is None) if silent and (yes or no) else None)


def _topics(clause: str) -> set[str]:
    return {family for words, families in TOPICS if re.search(words, clause, re.IGNORECASE) for family in families}


def _of_names(clause: str, modes: Mapping[str, FailureMode], verdict: str) -> Iterator[str]:
    """The modes whose claim holds a name of the code that the clause holds, where it says this of them."""
    for name in dict.fromkeys(_NAME.findall(clause)):
        for mode in modes.values():
            claim = mode.claim.lower()
            if re.search(rf"\b{re.escape(name.lower())}\b", claim) and verdict == _verdict(clause, claim):
                yield mode.id


def _verdict(clause: str, claim: str) -> str:
    """"not it", "it" (blamed, or said as the claim says it), or "": both ways are open."""
    if _NOT_IT.search(clause):
        return "not it"
    same = any(words.lower() in claim for words in _NEGATED.findall(clause))
    return "it" if same or (_BLAMES.search(clause) and not _DENIED.search(clause)) else ""


def _files(comment: str, workspace: Path) -> Iterable[Path]:
    """Files of the workspace that the comment names and that may be read."""
    for found in dict.fromkeys(_FILE.findall(comment)):
        try:
            path = resolve(found, workspace)
            if path.is_file() and readable(found, Scope(workspace)).allow:
                yield path
        except (OSError, ValueError, RuntimeError):
            continue


def steered(seen: Examination, given: Sequence[Steer]) -> Examination:
    """The examination with its hypotheses weighed again; a healthy run stays healthy."""
    hypotheses = seen.verdict.hypotheses
    return reweighed(seen, {h.mode.id: sum(s.shift(h.mode.id) for s in given) for h in hypotheses},
                     "What was said at the gate")


def reweighed(seen: Examination, shifts: Mapping[str, float], what: str) -> Examination:
    """The examination with its hypotheses moved by log-odds; `what` speaks against the first of them."""
    verdict = seen.verdict
    if not any(shifts.get(h.mode.id) for h in verdict.hypotheses) or verdict.status == "healthy":
        return seen
    ranked = weighing.shifted(verdict.hypotheses, {h.mode.id: shifts.get(h.mode.id, 0.0) for h in verdict.hypotheses})
    sure = ranked[0].confidence >= CONFIDENT
    open_ = (f"{what} speaks against {verdict.hypotheses[0].mode.id}, and no cause reaches a "
             f"confidence of {CONFIDENT:.2f} with it.")
    reason = ranked[0].issue if sure else open_ if verdict.status == "diagnosis_complete" else verdict.reason
    return replace(seen, verdict=replace(verdict, hypotheses=ranked, reason=reason,
                                         status="diagnosis_complete" if sure else "needs_more_data"))


def told(given: Sequence[Steer], mode: str, beside: Sequence[Hypothesis] = ()) -> str:
    """What the comments did to the cause that is diagnosed now, a sentence each; `beside`: all hypotheses."""
    return " ".join(f'You said: "{line(s.comment, 200).rstrip(".")}": {_did(s, mode, beside)}{_read_for(s)}.'
                    for s in given)


def noted(given: Sequence[Steer], seen: Examination) -> str:
    """What the comments did where no cause is sure enough, in one sentence each."""
    return " ".join(f'You said: "{line(s.comment, 200).rstrip(".")}": {_moved(s, seen)}{_read_for(s)}.' for s in given)


NEITHER = "noted; it says neither that what it names is at fault nor that it is not, and moved nothing"
WISHED = "noted as a wish about the fix; it is with the options"


def _moved(steer: Steer, seen: Examination) -> str:
    shifted = [(h, steer.shift(h.mode.id)) for h in seen.verdict.hypotheses if steer.shift(h.mode.id)]
    if shifted:
        did = ", ".join(f"{h.mode.id} by {shift:+.1f} log-odds to {h.confidence:.2f}" for h, shift in shifted)
        return f"noted, it moved {did}"
    if steer.named or steer.denied:
        return "noted; nothing that was found speaks for a cause of that kind"
    if steer.wish:
        return "noted as a wish about a fix; no fix is proposed yet"
    if steer.mentioned:
        return NEITHER
    if steer.agrees is not None:
        return f"noted as a {'yes' if steer.agrees else 'no'}; it says nothing that could be looked up"
    return "noted; it names no cause that the catalog knows"


def _did(steer: Steer, mode: str, beside: Sequence[Hypothesis]) -> str:
    shift = steer.shift(mode)
    if steer.wish and not shift:
        return WISHED
    if shift > 0:
        return f"weighed for this cause ({shift:+.1f} log-odds)"
    if shift < 0:
        return (f"weighed against this cause ({shift:+.1f} log-odds); the evidence still carries it, `reject` excludes "
                "it")
    if mode in steer.mentioned:
        return NEITHER
    if steer.agrees is not None:
        return ("noted as a yes; `approve` has the fix applied" if steer.agrees else
                "noted as a no; say what speaks against it, or `reject` excludes this cause")
    return _elsewhere(steer, beside)


def _elsewhere(steer: Steer, beside: Sequence[Hypothesis]) -> str:
    """What became of words about other causes than the one that is shown."""
    if not steer.named:
        return ("weighed; what it rules out is not what the evidence shows" if steer.denied
                else steer.found or "it names no cause that the catalog knows")
    meant = next((h for h in beside if h.for_ and h.failure_mode and steer.shift(h.failure_mode) > 0), None)
    if meant is None:
        return "weighed; it names another cause, and nothing that was read or run speaks for one of that kind"
    return f"weighed; it names another cause, and {meant.failure_mode} stands at {100 * meant.confidence:.0f} % with it"


def _read_for(steer: Steer) -> str:
    return f"; read for it: {', '.join(f.name for f in steer.files)}" if steer.files else ""
