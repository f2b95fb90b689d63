"""One host or rank runs other versions or settings than all others.

Compared are the versions, commits and settings that ranks print before their first step. An image that was not pulled
anew, a stale configuration or a module of another release gives one host other kernels, other shapes or another rate;
NCCL of two releases may hang or refuse. Values that are each rank's own (seeds, devices, ports, stages) have no usual
value, or are not asked for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_ranks.logs.job import Job, Start, named
from traindx_tools.on_ranks.logs.parting import FEW
from traindx_tools.rules import Rule, Threshold

_VERSIONS = re.compile(r"^(?:(?:torch|pytorch|nccl|cuda|cudnn|rocm|rccl|jax|jaxlib|xla|numpy|transformers|deepspeed"
                       r"|megatron|"
                       r"accelerate|flash_attn|apex|triton|transformer_engine|python)(?:[_.]?(?:runtime_)?version)?|"
                       r"(?:git_?)?(?:commit|revision|sha)(?:_hash)?|image|container)$")
_SETTINGS = re.compile(r"^(?:\w+\.)*(?:lr|learning_rate|(?:micro_|global_|train_)?batch_size"
                       r"|(?:max_)?seq(?:uence)?_len(?:gth)?|"
                       r"hidden_size|d_model|vocab_size|dtype|precision|grad(?:ient)?_accum(?:ulation)?(?:_steps)?|"
                       r"weight_decay|optimizer|warmup(?:_steps)?|zero_stage|tp|dp|tensor_parallel(?:_size)?|"
                       r"max_steps|bucket_cap_mb|tokenizer|dataset|data_path)$")
_HARMLESS = re.compile(r"^(?:driver(?:_version)?|kernel|os|glibc|nccl_[a-z_]+|bios|firmware)$")
NEEDED = 3

RULE = Rule(
    id="R206",
    name="settings-differ",
    title="One host runs another version or setting",
    severity=Severity.HIGH,
    sees="Versions, commits and settings that the ranks print before their first step.",
    matters="The replicas are not the same program: hangs, other shapes, or a model that is trained two ways at once.",
    alike=("Seeds, devices and ports: each rank has its own.", "Drivers and kernels: a remark."),
    confirm=("Print torch.__version__, torch.cuda.nccl.version() and a hash of the configuration on every rank.",),
    thresholds={"few": Threshold(FEW, "share of the ranks", "more is a group that is meant"),
                "told": Threshold(NEEDED, "ranks", "of two nobody knows which is odd")},
)


def check(job: Job) -> Iterator[Finding]:
    """At most one finding of weight (the first setting, the others counted), and one remark."""
    start = job.last
    every = [d for name in _names(start) if (d := _differing(start, name)) is not None]
    for wanted, severity in (((_VERSIONS, _SETTINGS), None), ((_HARMLESS,), Severity.LOW)):
        several = [d for d in every if any(p.match(d[0]) for p in wanted)]
        if several:
            yield _finding(start, several, severity)


Differing = tuple[str, str, str, tuple[int, ...], int]
"""Name, the odd value, the usual one, the odd ranks, and how many ranks tell it."""


def _names(start: Start) -> list[str]:
    return list(dict.fromkeys(name for r in start.ranks.values() for name in r.told.settings))


def _differing(start: Start, name: str) -> Differing | None:
    if not any(p.match(name) for p in (_VERSIONS, _SETTINGS, _HARMLESS)):
        return None
    told = {r.rank: r.told.settings[name][0] for r in start.ranks.values() if name in r.told.settings}
    usual, often = Counter(told.values()).most_common(1)[0]
    odd = tuple(r for r, v in told.items() if v != usual)
    values = {told[r] for r in odd}
    if not odd or len(told) < NEEDED or len(values) > 1 or len(odd) > max(1, FEW * len(told)) or often < 2:
        return None
    return name, values.pop(), usual, odd, len(told)


def _finding(start: Start, several: list[Differing], severity: Severity | None) -> Finding:
    name, value, usual, odd, telling = several[0]
    rank = start.ranks[odd[0]]
    hosts = {start.ranks[r].host for r in odd}
    host = f" (host {hosts.pop()})" if len(hosts) == 1 and rank.host else ""
    kind = "harmless" if severity is not None else "version" if _VERSIONS.match(name) else "setting"
    more = "".join(f"; {n} {v} where the others have {u}" for n, v, u, _, _ in several[1:4])
    return RULE.finding(
        f"{named(odd)}{host} {'runs' if len(odd) == 1 else 'run'} with {name} {value} where the other "
        f"{telling - len(odd):,} ranks have {usual}{more}",
        rank.at(rank.told.settings[name][1]), rank.source,
        bearing=Bearing.COMPANION if severity is not None else Bearing.SIGN, severity=severity,
        measured={"kind": kind, "name": name, "value": value, "usual": usual,
                  "ranks": odd[:64], "rank": odd[0], "host": rank.host, "operation": name, "seen": telling})
