"""The graph of a step dies with the step.

A tensor that requires gradients holds the graph of its step with all saved activations. What keeps one a step (a
running sum, a list, an average, a memory of past states, a list that a forward hook fills) keeps all of them alive:
memory grows by a fixed amount a step until it runs out. `.item()`, `.detach()`, `float()` and values under `no_grad`
carry no graph. A container that is made in the loop, is emptied or begins anew in it, is bounded, or whose sum is what
is sent backward, is left alone. Without a loop that trains, only a large bounded memory is told of: a rollout that is
learned from later needs its graphs.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.program.known import Known
from traindx_tools.program.lifetimes import ends_elsewhere, ends_in, removed, step_loop, training_loops, turns_outlived
from traindx_tools.program.moments import Act, Kept, Section, conditions_within, loops
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

RULES = pages("graph", ("C103", "C225", "C295"))
MOST_BOUNDED = 1_000
"""Entries up to which a bounded memory is a window: those for averages hold some ten to some hundred values, replay
memories ten thousand and more (the first, of DQN, a million)."""
_NOT_AGAIN = ("once", "never", "last")


def check(program: Program) -> Iterator[Breach]:
    """Look at everything that is kept."""
    trains = any(r.framework or Moment.BACKWARD in r.has for r in program.runs)
    for run in program.runs:
        for act, path in run.acts(Moment.KEPT):
            kept = act.kept
            if kept is None or (kept.bound is not None and kept.bound <= MOST_BOUNDED):
                continue
            hook = next((s for s in reversed(path) if s.kind == "hook"), None)
            if hook is not None:
                found = _by_a_hook(program, act, kept, hook, path) if trains and not _inspects(run, act) else None
            elif kept.is_gradient:
                continue
            else:
                found = _in_a_loop(program, run, act, kept, path)
            if found is not None:
                yield found


def _in_a_loop(program: Program, run: Section, act: Act, kept: Kept, path: tuple[Section, ...]) -> Breach | None:
    loop = step_loop(path)
    if loop is None:
        large = kept.bound is not None and kept.carries is True and bool(turns_outlived(path, kept))
        stays = large and not ends_elsewhere(program, kept, every=True)
        return _breach("C295", act, kept, "entry of a large memory") if stays else None
    if loop not in turns_outlived(path, kept) or _seldom(path, loop, kept) or ends_elsewhere(program, kept):
        return None
    if any(_steps_itself(s) for s in loops(path) if s is not loop and s not in turns_outlived(path, kept)):
        return None
    passes = [a for a, _ in run.acts(Moment.BACKWARD)]
    sent = frozenset(t for a in passes for t in a.traces)
    if kept.sum & sent or ends_in(loop, kept, sent):
        return None
    is_sent = bool(kept.own & sent)
    if not is_sent and not kept.carries:
        return None
    returned = any(kept.itself & a.traces for a, _ in run.acts(Moment.FORWARD))
    is_memory = kept.bound is not None or (returned and not is_sent and not loop.framework)
    return _breach("C295" if is_memory else "C103", act, kept, _turn(loop), passes, _pass_of(loop, is_sent))


def _steps_itself(loop: Section) -> bool:
    """Whether a loop sends a loss backward outside of the loops in it: they are parts of its step."""
    return any(not loops(path[1:]) for _, path in loop.acts(Moment.BACKWARD))


def _inspects(run: Section, act: Act) -> bool:
    """Whether the hook comes behind all training, and no loop of passes follows: a look at one pass."""
    acts = list(run.acts(Moment.KEPT, Moment.BACKWARD, Moment.FORWARD))
    at = next(i for i, (a, _) in enumerate(acts) if a is act)
    again = any(a.moment is Moment.BACKWARD or (a.moment is Moment.FORWARD and loops(path)) for a, path in acts[at:])
    return not again and any(a.moment is Moment.BACKWARD for a, _ in acts[:at])


def _turn(loop: Section) -> str:
    """How often it is kept, in words: a loop around the one that steps turns once an epoch."""
    steps = [path for _, path in loop.acts(Moment.BACKWARD)]
    inner = bool(steps) and all(any(s.kind == "loop" for s in path[1:]) for path in steps)
    return f"turn of the loop at {loop.at}" if inner else ""


def _pass_of(loop: Section, is_sent: bool) -> str:
    """Where the graph comes from: the only pass of a turn that no loop sends backward, an evaluation; "" elsewhere."""
    if is_sent:
        return ""
    made = [(a, path) for a, path in loop.acts(Moment.FORWARD) if a.gradients is not False
            and not any(s.kind == "loop" and Moment.BACKWARD in s.has for s in path[1:])]
    if len({str(a.at) for a, _ in made}) != 1 or not _turn(loop):
        return ""
    act, path = made[0]
    function = next((s.name for s in reversed(path) if s.kind == "call" and s.name), "")
    return f"{act.at}" + (f" ({function})" if function else "")


def _seldom(path: tuple[Section, ...], loop: Section, kept: Kept) -> bool:
    """Whether it is kept in one turn only, or while the container is short."""
    conditions = conditions_within(path, loop)
    return any(c.has(k) for c in conditions for k in _NOT_AGAIN) or any(
        a.asks_length_of(kept.containers) for c in conditions for a in c.atoms())


def _breach(name: str, act: Act, kept: Kept, where: str, passes: list[Act] | None = None, made: str = "") -> Breach:
    retained = any(a.retains for a in passes or ())
    what = "what a network returned, with the graph of its pass," if name == "C295" else (
        f"a tensor that still carries {f'the autograd graph of the pass at {made}' if made else 'its autograd graph'},")
    return Breach(
        name,
        f"{kept.text} at {act.at} keeps {what} in every {where or 'training step'}; nothing detaches it"
        + (" (and retain_graph keeps the buffers as well)" if retained else ""),
        act.at, act.known,
        {"kind": "kept" if name == "C103" else "replay", "expression": kept.text, "retain_graph": retained},
        remedy=Remedy("cut what is kept", act, text=" ".join(map(str, kept.parts))))


def _by_a_hook(program: Program, act: Act, kept: Kept, hook: Section, path: tuple[Section, ...]) -> Breach | None:
    conditions = conditions_within(path, hook)
    if not turns_outlived(path, kept) or removed(program, kept) or (
            kept.born & training_loops(program)) or _seldom(path, hook, kept):
        return None
    certain = kept.carries is True and not kept.is_gradient and all(c.kind == "always" for c in conditions)
    what = "the gradient" if kept.is_gradient else "what the layer gave, with its graph,"
    return Breach(
        "C225", f"{kept.text} at {act.at} keeps {what} at every pass of the hook registered at {hook.at}; nothing "
        "empties it: memory grows with every step", act.at, act.known if certain else Known.GUESSED,
        {"kind": "gradients" if kept.is_gradient else "activations"}, Severity.MEDIUM if kept.is_gradient else None,
        None if kept.is_gradient else Remedy("cut what is kept", act, text=" ".join(map(str, kept.parts))))
