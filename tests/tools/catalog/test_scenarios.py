"""Weights at work: what typical sets of findings lead triage to, with values as the rules measure them."""

from __future__ import annotations

from typing import Any

import pytest

from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.triage import CONFIDENT, Hypothesis, rank

CATALOG = load_catalog()


def seen(rule: str, bearing: str = "sign", step: float | None = 100.0, **measured: Any) -> Finding:
    where = Location(file="train.py", line=12) if rule[0] == "C" else Location(file="log.txt", line=40, step=step)
    return Finding(rule=rule, title=rule, severity=Severity.HIGH, bearing=Bearing(bearing),
                   statement=f"{rule} saw it", where=where, source="log.txt", measured=measured)


def code(rule: str, **measured: Any) -> Finding:
    return seen(rule, "cause", None, **measured)


def first_of(*findings: Finding) -> Hypothesis:
    return rank(findings, CATALOG)[0]


LEADS: dict[str, tuple[str, tuple[Finding, ...]]] = {
    "overfitting": ("fit.overfitting", (seen("L203", kind="loss"),)),
    "overfitting, accuracy only": ("fit.overfitting", (seen("L203", kind="accuracy"),)),
    "old state evaluated, which looks like overfitting": ("eval.stale-model", (
        seen("L203", kind="accuracy"), seen("L208"), seen("J705", "cause", kind="captured", evaluated=False))),
    "old state evaluated, which looks like statistics": ("eval.stale-model", (
        seen("L204", kind="from-start"), seen("L208"), seen("J705", "cause", kind="unread", evaluated=False))),
    "old copy evaluated": ("eval.stale-model", (seen("L208"), seen("T343", "cause", kind="copy"))),
    "statistics of the first call in the step": ("jax.fixed-at-tracing", (
        seen("J705", "cause", kind="training", evaluated=False),)),
    "extreme rate diverges": ("lr.too-high", (
        seen("L307", kind="high", lr=10.0), seen("L106", onset="from-start", factor=50.0))),
    "extreme rate explodes": ("lr.too-high", (
        seen("L307", kind="high", lr=10.0), seen("L102", onset="ramp", peak=1e5), seen("L101", onset="ramp"))),
    "tiny rate": ("lr.too-low", (seen("L307", kind="low", lr=1e-9), seen("L201", pace="crawl"))),
    "zero early": ("lr.zero-early", (
        seen("L301", onset="later"), seen("L306", kind="too-fast", integer=False, k=2.6))),
    "zero early alone": ("lr.zero-early", (seen("L301", onset="later"),)),
    "zero from the start": ("lr.zero-early", (seen("L301", onset="from-start"), seen("L201", pace="flat"))),
    "pace of the world size": ("lr.stepped-too-often", (
        seen("L301", onset="later"), seen("L306", kind="too-fast", integer=True, k=4, equals="world size"))),
    "schedule too long": ("lr.wrong-total", (seen("L306", kind="too-slow", integer=True, k=4, equals="accumulation"),)),
    "per batch": ("lr.epoch-step-confusion", (seen("L304", kind="per-batch"), seen("L301", onset="later"))),
    "compounding": ("lr.compounding-decay", (seen("L303", ratio=0.97), seen("L201", "companion", pace="flat"))),
    "never stepped": ("lr.constant-though-scheduled", (seen("L308", setting="scheduler", schedule="cosine"),)),
    "rate restarts on resume": ("lr.restart-on-resume", (
        seen("L302", at_resume=True, loss_jump=True), seen("L207", kind="resume", lr_ratio=20.0))),
    "rate jumps without a resume": ("lr.cyclic-restart", (seen("L302", at_resume=False),)),
    "warm-up without end": ("lr.warmup-never-ends", (seen("L309", "cause", ended=True, share=0.25),)),
    "schedule turns": ("lr.schedule-turns-again", (seen("L310", "cause", share=1.0, schedule_end=300.0),)),
    "count of zero at the first NaN": ("num.zero-count-division", (
        seen("L101", onset="abrupt", kind="nan"), seen("L109", kind="zero-count", metric="n_valid"))),
    "inputs bad at the first NaN": ("data.nan-in-input", (
        seen("L101", onset="abrupt", kind="nan"), seen("L109", kind="input-nonfinite", metric="x_mean"))),
    "data bound": ("loader.input-bound", (seen("L402", share=0.9),)),
    "double softmax by arithmetic": ("loss.softmax-before-ce", (
        seen("L202", kind="double-softmax", classes=10), seen("L201", pace="flat"))),
    "double softmax by the floor": ("loss.softmax-before-ce", (
        seen("L205", kind="floored-loss", double_softmax_classes=10),)),
    "loss off by the accumulation": ("accum.loss-not-divided", (seen("L202", kind="loss-ratio", factor=8),)),
    "zero advantages, equal rewards": ("rl.zero-advantages", (
        seen("L602", kind="no-variance"), seen("L104", scope="whole", reinforcement=True, loss_zero=True),
        seen("L604", "companion", kind="flat"))),
    "zero advantages, rewards differ": ("rl.group-of-one", (
        seen("L602", kind="variance-present"), seen("L104", scope="whole", reinforcement=True, loss_zero=True))),
    "entropy collapse": ("rl.entropy-collapse", (seen("L603", kind="collapsed"),)),
    "gibberish": ("rl.entropy-gibberish", (seen("L603", kind="rising"),)),
    "kl explodes": ("rl.kl-explosion", (seen("L605", kind="exploding"),)),
    "posterior collapse": ("vae.posterior-collapse", (seen("L607", kind="collapsed"),)),
    "discriminator wins": ("gan.discriminator-wins", (seen("L606", kind="discriminator-wins"),)),
    "weighted term dominates": ("loss.component-domination", (seen("L209", kind="weighted", term="kl"),)),
    "commitment dominates": ("vq.commitment-too-high", (
        seen("L209", kind="weighted", term="loss/commitment"), seen("L601", kind="collapsed"))),
    "dead term": ("loss.dead-term", (seen("L210", kind="zero", term="loss/aux"),)),
    "unsynchronised ranks": ("dist.replicas-not-synchronised", (seen("L701", kind="value", metric="weight_norm"),)),
    "uneven ranks": ("dist.uneven-batches", (
        seen("L701", kind="count", metric="batches"), seen("L515", step=None, kind="timeout"))),
    "step at a shift of the data": ("lr.too-high-after-shift", (
        seen("L207", kind="epoch", at=7.0, lr_ratio=1.0), seen("L106", onset="later", factor=3.0))),
    "sorted data": ("data.unshuffled", (seen("L206", kind="sawtooth"),)),
    "host out of memory": ("mem.host-oom", (seen("L509", step=None, kind="oom-killer"),)),
    "unused parameters": ("dist.unused-parameters", (seen("L521", "cause", None, kind="unused"),)),
    "nan behind a zero": ("nan.filtered-by-logger", (
        seen("L108", kind="zero", gradient_nonfinite=True, onset="from-start"),)),
    "throughput decay": ("perf.throughput-decay", (seen("L404", "companion", memory_grows=False),)),
    # from an error message
    **{f"message {rule} {kind}": (mode, (seen(rule, "sign", None, kind=kind),)) for rule, kind, mode in (
        ("L501", "class-target", "index.label-beyond-classes"),
        ("L501", "probability-nan", "num.nan-probabilities"),
        ("L502", "illegal-access", "cuda.illegal-memory-access"),
        ("L502", "hardware", "env.hardware-fault"),
        ("L502", "no-kernel-image", "env.gpu-architecture"),
        ("L504", "embedding", "index.token-beyond-embedding"),
        ("L504", "position-embedding", "index.position-beyond-table"),
        ("L505", "matmul", "shape.mismatch"),
        ("L505", "collate", "data.ragged-batch"),
        ("L505", "gradient-not-scalar", "loss.not-scalar"),
        ("L506", "operands", "dtype.mismatch"),
        ("L507", "operands", "device.mismatch"),
        ("L507", "numpy", "graph.numpy-conversion"),
        ("L508", "total", "mem.batch-too-large"),
        ("L508", "first-step", "mem.batch-too-large"),
        ("L508", "fragmentation", "mem.fragmentation"),
        ("L508", "other-process", "mem.other-process"),
        ("L509", "exit-137", "mem.host-oom"),
        ("L510", "cuda-in-fork", "loader.cuda-in-fork"),
        ("L510", "unpicklable", "loader.unpicklable"),
        ("L510", "shared-memory", "loader.worker-killed"),
        ("L510", "start-method", "loader.start-method"),
        ("L510", "too-many-open-files", "loader.open-files"),
        ("L511", "graph-freed", "graph.freed-twice"),
        ("L512", "in-place", "graph.inplace"),
        ("L513", "unscale-fp16", "amp.half-weights-with-gradscaler"),
        ("L513", "unscale-twice", "amp.unscale-twice"),
        ("L513", "no-inf-checks", "amp.no-inf-checks"),
        ("L514", "detached", "grad.detached-loss"),
        ("L514", "empty-optimizer", "opt.wrong-parameters"),
        ("L514", "ddp-frozen", "opt.frozen-parameters"),
        ("L514", "needs-detach", "graph.numpy-conversion"),
        ("L516", "leak", "jax.tracer-leak"),
        ("L516", "bool-conversion", "jax.concretization"),
        ("L517", "dtype", "jax.scan-carry-mismatch"),
        ("L518", "prefix-mismatch", "ckpt.prefix-mismatch"),
        ("L518", "size-mismatch", "ckpt.architecture-mismatch"),
        ("L518", "optimizer-groups", "ckpt.optimizer-groups"),
        ("L519", "one-value", "bn.batch-size-one"),
        ("L520", "target-out-of-bounds", "index.label-beyond-classes"),
        ("L520", "target-dtype", "dtype.mismatch"),
        ("L520", "target-size", "shape.mismatch"),
        ("L520", "input-outside-0-1", "loss.nll-without-log-softmax"),
        ("L521", "ready-twice", "dist.parameter-ready-twice"),
        ("L522", "corrupt-checkpoint", "ckpt.corrupt"),
        ("L522", "no-space", "env.disk-full"),
        ("L522", "missing", "cfg.path-missing"),
        ("L522", "weights-only", "ckpt.weights-only"),
        ("L522", "corrupt-sample", "data.corrupt-sample"),
        ("L523", "var-degrees-of-freedom", "num.zero-variance-normalisation"),
        ("L523", "probabilities", "num.nan-probabilities"),
        ("L523", "singular", "num.singular-matrix"),
        ("L524", "import-name", "env.version-drift"),
        ("L524", "cuda-build", "env.accelerator-backend"),
        ("L525", "unexpected-keyword", "cfg.unknown-key"),
        ("L526", "target-size-broadcast", "loss.broadcast"),
        ("L526", "no-input-requires-grad", "grad.checkpoint-frozen-input"),
        ("L527", "size", "index.tokenizer-larger"),
        ("L527", "padding-token", "index.padding-token-missing"),
        ("L528", "port-in-use", "dist.rendezvous"),
        ("L528", "duplicate-gpu", "dist.one-gpu-for-all-ranks"),
        ("L529", "memory", "jax.device-oom"),
    )},
    "anomaly mode names a logarithm": ("loss.log-of-zero", (
        seen("L523", step=None, kind="anomaly-backward", function="LogBackward0"), seen("L101", onset="abrupt"))),
    "anomaly mode names a root": ("grad.sqrt-at-zero", (
        seen("L523", step=None, kind="anomaly-backward", function="SqrtBackward0"), seen("L101", onset="abrupt"))),
    "anomaly mode names a softmax": ("num.all-masked-softmax", (
        seen("L523", step=None, kind="anomaly-backward", function="SoftmaxBackward0"),
        seen("L101", onset="from-start"))),
    # with the code at hand
    "zero_grad": ("accum.zero-grad-missing", (
        code("C101", kind="never"), seen("L102", onset="ramp", peak=1e4), seen("L106", onset="from-start"))),
    "clip before unscale": ("amp.clip-before-unscale", (code("C106", kind="clip"), seen("L201", pace="crawl"))),
    "other parameters": ("opt.wrong-parameters", (code("C108", kind="other model"), seen("L201", pace="flat"))),
    "frozen": ("opt.wrong-parameters", (code("C108", kind="too early"), seen("L215", kind="series"))),
    "broadcast": ("loss.broadcast", (code("C109", kind="broadcast"), seen("L202", kind="target-variance"))),
    "log of zero": ("loss.log-of-zero", (code("C107", kind="log"), seen("L101", onset="abrupt", kind="nan"))),
    "eval never undone": ("eval.mode-never-undone", (code("C104", kind="in the loop"), seen("L203", kind="loss"))),
    "graph kept": ("mem.graph-kept", (code("C103", kind="kept"), seen("L401", metric="memory"))),
    "scheduler in the wrong loop": ("lr.epoch-step-confusion", (
        code("C110", kind="per batch, length in epochs"), seen("L301", onset="later"))),
    "key reuse": ("jax.key-reuse", (code("C501", kind="reuse", first_use="split"), seen("L208", eval_accuracy=0.5))),
    "straight through": ("jax.straight-through-lost", (code("C503"), seen("L601", kind="never-used"))),
    "rounded updates": ("num.bf16-update-rounding", (code("C124", kind="rounding"), seen("L201", pace="crawl"))),
    "window": ("accum.zero-grad-in-window", (
        code("C113", kind="in every micro-batch"), seen("L214", learned_position="last"))),
    "cleared before the step": ("accum.zero-grad-before-step", (
        code("C113", kind="between backward and step"), seen("L201", pace="flat"))),
    "dead units": ("act.dead-relu", (
        code("C123", kind="dead units"), seen("L202", kind="uniform-guess"), seen("L201", pace="flat"))),
    "constant weights": ("init.constant-weights", (code("C123", kind="constant weights"), seen("L201", pace="flat"))),
    "statistics too slow": ("bn.running-statistics", (code("C115", kind="too slow"), seen("L204", kind="growing"))),
    "seed by rank": ("dist.replicas-not-synchronised", (code("C116", kind="seed"),)),
    "collective under a rank": ("dist.collective-under-rank-condition", (
        code("C117", kind="rank"), seen("L515", step=None, kind="timeout"))),
    "uneven loops": ("dist.uneven-batches", (
        code("C117", kind="uneven"), seen("L515", step=None, kind="timeout"))),
    "ordered rows": ("data.unshuffled", (code("C121", kind="ordered"), seen("L206", kind="sawtooth"))),
    "objects in workers": ("loader.copy-on-write", (
        code("C122", kind="objects"), seen("L401", metric="memory/workers"))),
    "cast after overflow": ("num.fp16-activation-overflow", (
        seen("L105", first=65536.0, last=1.0), seen("L101", onset="abrupt"))),
    "slow fetch": ("loader.input-bound", (code("C129", kind="fetch"), seen("L402", share=0.8))),
    "where": ("num.where-unsafe-branch", (code("C502", kind="where"), seen("L101", onset="abrupt"))),
    "adam in half": ("num.adam-eps-half", (code("C505"), seen("L101", onset="from-start"))),
    "rate in the code": ("lr.too-high", (
        code("C128", kind="high"), seen("L106", onset="from-start"), seen("L102", onset="ramp", peak=1e5))),
}


@pytest.mark.parametrize("name", LEADS)
def test_what_speaks_for_one_cause_puts_it_first(name: str) -> None:
    expected, findings = LEADS[name]
    first = first_of(*findings).mode
    assert expected in (first.id, *first.causes), "the cause, or one that brings it about"


OPEN: dict[str, tuple[Finding, ...]] = {
    "a loss scale that walks down": (seen("L105", first=65536.0, last=1.0),),
    "an abrupt NaN": (seen("L101", onset="abrupt", kind="nan", metric="loss"),),
    "a NaN from the start": (seen("L101", onset="from-start", kind="nan", metric="loss"),),
    "a NaN in the gradients first": (seen("L101", onset="abrupt", kind="nan", metric="grad_norm"),),
    "a NaN under a loss scale": (seen("L101", onset="abrupt", kind="nan", metric="loss", loss_scale=65536.0),),
    "a ramp at a usual rate": (seen("L102", onset="ramp", peak=1e4), seen("L101", onset="ramp", kind="nan")),
    "a rise of the loss": (seen("L106", onset="later", factor=3.0),),
    "a plateau": (seen("L201", pace="flat"),),
    "a crawl": (seen("L201", pace="crawl"),),
    "ln classes": (seen("L202", kind="uniform-guess", classes=10), seen("L211", classes=10), seen("L201", pace="flat")),
    "ln 2": (seen("L202", kind="uniform-guess", binary=True, classes=2), seen("L201", pace="flat")),
    "variance of the target": (
        seen("L202", kind="target-variance"), seen("L213", kind="std"), seen("L201", pace="flat")),
    "zero gradients": (seen("L104", scope="whole", reinforcement=False, onset="from-start"),),
    "vanishing gradients": (seen("L103", scope="whole", from_start=True), seen("L201", pace="flat")),
    "a gap from the start": (seen("L204", kind="from-start"),),
    "a growing gap": (seen("L204", kind="growing"),),
    "perfect training, chance in evaluation": (seen("L208", eval_accuracy=0.1),),
    "an unchanged evaluation": (seen("L215", kind="before-after"),),
    "unchanged weights": (seen("L215", kind="weights"), seen("L201", pace="flat")),
    "memory grows": (seen("L401", metric="memory"),),
    "some tasks do not learn": (seen("L214", learned_position="last"),),
    "kl of zero": (seen("L605", kind="zero", reward_course="flat", gradient_nonzero=True),),
    "a step at a resume": (seen("L207", kind="resume", lr_ratio=1.0),),
    "a collapsed codebook": (seen("L601", kind="never-used", replaced=20.0),),
    "a collective timed out": (seen("L515", step=None, kind="timeout"),),
    "a flat reward": (seen("L604", "companion", kind="flat"),),
}


@pytest.mark.parametrize("name", OPEN)
def test_what_several_causes_explain_stays_open(name: str) -> None:
    ranked = rank(OPEN[name], CATALOG)
    assert ranked[0].confidence < CONFIDENT
    assert len(ranked) >= 3


def test_a_direct_cause_in_code_outranks_its_consequences_in_the_log() -> None:
    first = first_of(code("C101", kind="never"), seen("L102", onset="ramp", peak=1e6), seen("L101", onset="ramp"),
                     seen("L106", onset="later"), seen("L107", recovered=False))
    assert first.mode.id == "accum.zero-grad-missing"
    assert first.confidence > 0.8
