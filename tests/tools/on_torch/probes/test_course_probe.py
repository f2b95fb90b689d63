"""Counts that must agree over a whole run: schedules and steps, windows and divisors, passes and steps."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import lr_scheduler as schedules

from traindx_tools.on_torch.measures.horizon import length_like, peak_of
from traindx_tools.on_torch.probes.course import CourseProbe
from traindx_tools.on_torch.probes.gradients import GradientProbe
from traindx_tools.on_torch.probes.program import ProgramProbe

STEPS = 60


def run(make_schedule, *, steps=STEPS, passes=1, divide=1.0, seldom=1, often=1, step=True,
        kind=torch.optim.SGD, rate=0.05):
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = kind(model.parameters(), rate)
    schedule = make_schedule(optimizer) if make_schedule else None
    for number in range(steps):
        for _ in range(passes):
            x = torch.randn(16, 8)
            (F.mse_loss(model(x)[:, 0], x[:, 0]) / divide).backward()
        if step:
            optimizer.step()
            if schedule is not None and number % seldom == 0:
                for _ in range(often):
                    schedule.step()
        optimizer.zero_grad()


def ramp(length):
    return lambda o: schedules.LambdaLR(o, lambda s: min(1.0, (s + 1) / length))


def huggingface(warmup, total):
    transformers = pytest.importorskip("transformers")
    return lambda o: transformers.get_linear_schedule_with_warmup(o, warmup, total)


def cosine(length):
    return lambda o: schedules.CosineAnnealingLR(o, length)


def warm_then_cosine(warm, total):
    def factor(step):
        if step < warm:
            return (step + 1) / warm
        return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, total - warm)))

    return lambda o: schedules.LambdaLR(o, factor)


def rounded_down(o):
    return schedules.LambdaLR(o, lambda s: float(min(1, s // 20)))


FAULTY = {
    "a ramp longer than the run": (lambda: run(ramp(500)), "T211", "warmup"),
    "a warm-up longer than the run": (lambda: run(huggingface(200, 1000)), "T211", "warmup"),
    "a cosine shorter than the run": (lambda: run(cosine(40)), "T211", "turned"),
    "stepped once an epoch": (lambda: run(cosine(STEPS), seldom=20), "T211", "epochs"),
    "stepped twice a step": (lambda: run(huggingface(5, STEPS), often=2), "T211", "often"),
    "in steps, stepped once an epoch": (lambda: run(warm_then_cosine(20, STEPS), seldom=10), "T211", "epochs"),
    "rounded down": (lambda: run(rounded_down), "T212", None),
    "not divided": (lambda: run(None, passes=4, steps=8), "T213", "not-divided"),
    "divided twice": (lambda: run(None, passes=4, steps=8, divide=16.0), "T213", "twice"),
    "divided by another number": (lambda: run(None, passes=4, steps=8, divide=8.0), "T213", "other"),
    "never stepped": (lambda: run(None, step=False, steps=10), "T311", None),
}


def by_hand():
    """An optimizer is made and not used: the weights are moved by hand."""
    model = nn.Linear(8, 1)
    spare = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(10):
        x = torch.randn(16, 8)
        F.mse_loss(model(x)[:, 0], x[:, 0]).backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
        spare.zero_grad()


def saliency():
    model = nn.Linear(8, 1)
    for _ in range(10):
        x = torch.randn(16, 8, requires_grad=True)
        model(x).sum().backward()


def two_losses_of_one_batch():
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    for _ in range(8):
        x = torch.randn(16, 8)
        out = model(x)
        F.mse_loss(out[:, 0], x[:, 0]).backward(retain_graph=True)
        F.mse_loss(out[:, 1], x[:, 1]).backward()
        optimizer.step()
        optimizer.zero_grad()


def summed():
    """Sums over samples, divided by the samples of the window."""
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    for _ in range(8):
        for _ in range(4):
            x = torch.randn(16, 8)
            (F.mse_loss(model(x)[:, 0], x[:, 0], reduction="sum") / 64).backward()
        optimizer.step()
        optimizer.zero_grad()


def closures():
    """L-BFGS evaluates the loss again within its step."""
    model, x = nn.Linear(8, 1), torch.randn(16, 8)
    optimizer = torch.optim.LBFGS(model.parameters())

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(model(x)[:, 0], x[:, 0].square())
        loss.backward()
        return loss

    for _ in range(6):
        optimizer.step(closure)


def resumed():
    def make(optimizer):
        schedule = schedules.CosineAnnealingLR(optimizer, 3 * STEPS)
        schedule.load_state_dict({**schedule.state_dict(), "last_epoch": 2 * STEPS})
        return schedule

    run(make)


def tokens(weigh, *, lengths=(3, 24, 12, 6), kind=torch.optim.SGD, last=8, steps=8):
    """A language model whose micro-batches hold more or fewer words that count; `weigh(count, all)` is the factor."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 20))
    optimizer = kind(model.parameters(), 0.05)
    for number in range(steps):
        now = lengths if number < last else [8] * len(lengths)
        for length in now:
            ids = torch.randint(0, 20, (2, 30))
            target = ids.roll(-1, 1).clone()
            target[:, length:] = -100
            loss = F.cross_entropy(model(ids).flatten(0, 1), target.flatten())
            (loss * weigh(length, sum(now))).backward()
        optimizer.step()
        optimizer.zero_grad()


def divided_before_the_step():
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    for _ in range(8):
        for _ in range(4):
            x = torch.randn(16, 8)
            F.mse_loss(model(x)[:, 0], x[:, 0]).backward()
        for p in model.parameters():
            p.grad /= 4
        optimizer.step()
        optimizer.zero_grad()


def one_window_is_short():
    """The last batch of an epoch."""
    tokens(lambda n, whole: 0.25, lengths=(8, 8, 8, 2), last=1)


def two_tasks():
    """Passes of one window with losses of their own."""
    model = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    for _ in range(8):
        x = torch.randn(16, 8)
        (F.mse_loss(model(x)[:, 0], x[:, 0]) / 2).backward()
        x = torch.randn(4, 8)
        (F.cross_entropy(model(x), x.argmax(1) % 3) / 2).backward()
        optimizer.step()
        optimizer.zero_grad()


def test_tokens_of_a_short_micro_batch_weigh_more(watching):
    with watching(ProgramProbe, CourseProbe) as seen:
        tokens(lambda n, whole: 0.25)
    finding = seen.one("T213")
    assert finding.measured["kind"] == "unequal"
    assert finding.measured["spread"] == pytest.approx(8, rel=0.01)
    assert seen.loud == []


def test_the_gradient_of_one_batch_is_that_of_one_batch(watching):
    """What the probe derives is what a backward pass over all rows gives."""
    torch.manual_seed(2)
    model = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 20))
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    batches = []
    for length in (3, 24, 12, 6):
        ids = torch.randint(0, 20, (2, 30))
        target = ids.roll(-1, 1).clone()
        target[:, length:] = -100
        batches.append((ids, target))
    with watching(CourseProbe) as seen:
        for _ in range(4):
            optimizer.zero_grad()
            for ids, target in batches:
                (F.cross_entropy(model(ids).flatten(0, 1), target.flatten()) / 4).backward()
            optimizer.step()
        accumulated = torch.cat([p.grad.flatten() for p in model.parameters()])
    model.zero_grad()
    ids, target = (torch.cat(v) for v in zip(*batches, strict=True))
    F.cross_entropy(model(ids).flatten(0, 1), target.flatten()).backward()
    one = torch.cat([p.grad.flatten() for p in model.parameters()])
    assert seen.one("T213").measured["cosine"] == pytest.approx(
        float(F.cosine_similarity(accumulated, one, dim=0)), abs=1e-3)
    measured = seen.probes[0]._gradients.measured()
    assert measured.ratio == pytest.approx(float(accumulated.norm() / one.norm()), rel=1e-3)


HEALTHY = {
    "tokens are counted": lambda: tokens(lambda n, whole: n / whole),
    "gradients are divided": divided_before_the_step,
    "one window is short": one_window_is_short,
    "two tasks": two_tasks,
    "a ramp within the run": lambda: run(ramp(10)),
    "warm-up and decay": lambda: run(huggingface(5, STEPS)),
    "a cosine as long": lambda: run(cosine(STEPS)),
    "one cycle": lambda: run(lambda o: schedules.OneCycleLR(o, 0.1, total_steps=STEPS + 1)),
    "in steps, stepped in steps": lambda: run(warm_then_cosine(20, STEPS)),
    "restarts": lambda: run(lambda o: schedules.CosineAnnealingWarmRestarts(o, 20)),
    "once an epoch, for epochs": lambda: run(cosine(3), seldom=20),
    "a short trial": lambda: run(huggingface(200, 1000), steps=6),
    "a custom decay": lambda: run(lambda o: schedules.LambdaLR(o, lambda s: 0.97**s)),
    "a cosine that is not cut off": lambda: run(lambda o: schedules.LambdaLR(
        o, lambda s: min(1.0, (s + 1) / 10) * 0.5 * (1 + math.cos(math.pi * s / STEPS)))),
    "from zero": lambda: run(lambda o: schedules.LambdaLR(o, lambda s: min(1.0, s / 10))),
    "divided": lambda: run(None, passes=4, steps=8, divide=4.0),
    "not accumulated": lambda: run(None, steps=8),
    "closures": closures, "resumed": resumed, "by hand": by_hand, "saliency": saliency, "summed": summed,
    "two losses of one batch": two_losses_of_one_batch,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTY)
def test_counts_that_do_not_agree_are_named(name, watching):
    program, rule, kind = FAULTY[name]
    with watching(ProgramProbe, CourseProbe) as seen:
        program()
    finding = seen.one(rule)
    assert finding.measured.get("kind") == kind
    assert finding.where.file == __file__ or "transformers" in str(finding.where.file)
    assert [f.rule for f in seen.findings if f.severity.rank >= 2] == [rule]


@pytest.mark.slow
@pytest.mark.parametrize("name", HEALTHY)
def test_counts_that_agree_are_left_alone(name, watching):
    with watching(ProgramProbe, CourseProbe) as seen:
        HEALTHY[name]()
    assert seen.loud == []


def _scheduler(make):
    return make(torch.optim.SGD([nn.Parameter(torch.zeros(1))], 0.1))


@pytest.mark.parametrize(("make", "steps", "taken", "peak"), [
    (warm_then_cosine(200, 1496), 8, 1496, 199),  # found to the step, though beyond twenty times the schedule's own
    (warm_then_cosine(20, 60), 6, 60, 19),
    (ramp(37), 5, 60, 36),
    (warm_then_cosine(4, 60), 30, 60, None),  # it has fallen already
    (cosine(60), 6, 60, None),
])
def test_the_peak_is_told_to_the_step(make, steps, taken, peak):
    assert peak_of(_scheduler(make), steps, taken) == peak


def test_the_length_that_a_function_holds():
    assert length_like(_scheduler(warm_then_cosine(200, 1496)), 1480) == 1496
    assert length_like(_scheduler(warm_then_cosine(200, 1496)), 900) is None
    assert length_like(_scheduler(cosine(60)), 60) is None
    assert length_like(object(), 60) is None


def test_a_run_that_fails_says_nothing_of_lengths(watching):
    def lost(step):
        if step > STEPS - 5:
            raise RuntimeError("lost")
        return min(1.0, (step + 1) / 500)

    with pytest.raises(RuntimeError, match="lost"), watching(ProgramProbe, CourseProbe) as seen:
        run(lambda o: schedules.LambdaLR(o, lost))
    assert seen.rules == []


def test_with_adam_a_sum_is_a_remark(watching):
    with watching(CourseProbe) as seen:
        run(None, passes=4, steps=8, kind=torch.optim.Adam)
    assert seen.one("T213").severity.value == "low"


def test_a_schedule_that_fails_when_it_is_asked_costs_nothing(watching):
    def fragile(step):
        if step > STEPS + 1:
            raise IndexError(step)
        return 1.0

    with watching(ProgramProbe, CourseProbe) as seen:
        run(lambda o: schedules.LambdaLR(o, fragile))
    assert seen.rules == []


def test_a_rate_that_stays_zero_names_the_schedule(watching):
    with watching(ProgramProbe, GradientProbe) as seen:
        run(lambda o: schedules.LambdaLR(o, lambda s: float(s // 1000)), steps=80)
    assert seen.one("T210").where.file == __file__
    assert seen.one("T210").where.line is not None
