"""Keys in loops and branches: what is the same in every iteration, what is carried on, what only one branch uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from traindx_tools.on_jax.keys.course import Around, Flow, fresh, is_key, name_of
from traindx_tools.on_jax.keys.naming import Facts, Names, Value, as_raw

MOST_ROWS = 4096
"""Keys that a scan goes over whose use in its body counts as a use outside it."""


def cond(flow: Flow, eqn: Any, given: list[Value], around: Around) -> list[Value]:
    """Follows every branch: of what they use only one branch's happens."""
    results = []
    whole = name_of(flow.names, eqn, given)
    for index, branch in enumerate(eqn.params["branches"]):
        inside = around.within(f"cond branch {index}", eqn, branches=(*around.branches, (whole, index)))
        results.append(flow.body(flow, branch, given[1:], inside))
    outputs = []
    for i, variable in enumerate(eqn.outvars):
        told = [r[i] for r in results]
        same = all(t.name == told[0].name for t in told)
        outputs.append(told[0] if same else fresh(flow.names, variable.aval, ("branch", i), None, (whole,)))
    return outputs


def scan(flow: Flow, eqn: Any, given: list[Value], around: Around) -> list[Value]:
    """Follows the body of a scan."""
    params = eqn.params
    loop = name_of(flow.names, eqn, given)
    consts, carries = params["num_consts"], params["num_carry"]
    xs = [_row(flow.names, loop, i, v, a.aval) for i, (v, a) in enumerate(
        zip(given[consts + carries:], eqn.invars[consts + carries:], strict=True))]
    inside = around.within("scan", eqn, loops=(*around.loops, (loop, params["length"])))
    carry, ys = _loop(flow, eqn, params["jaxpr"], given[:consts], given[consts:consts + carries], xs, inside)
    outputs = [*carry]
    for i, y in enumerate(ys):
        facts = Facts(flow.names.facts[y.name].loops - {loop}, flow.names.facts[y.name].arguments)
        whole = flow.names.of("stacked", i, parts=(loop, y.name), facts=facts)
        outputs.append(fresh(flow.names, eqn.outvars[carries + i].aval, ("stacked",), facts, (whole,)))
    return outputs


def while_loop(flow: Flow, eqn: Any, given: list[Value], around: Around) -> list[Value]:
    """Follows the body of a while loop."""
    params = eqn.params
    tests, consts = params["cond_nconsts"], params["body_nconsts"]
    inside = around.within("while", eqn, loops=(*around.loops, (name_of(flow.names, eqn, given), None)))
    return _loop(flow, eqn, params["body_jaxpr"], given[tests:tests + consts], given[tests + consts:], [], inside)[0]


def _row(names: Names, loop: int, index: int, value: Value, aval: Any) -> Value:
    """One iteration's part of what a scan goes over: equal rows are the same in each iteration."""
    facts = Facts(names.facts[value.name].loops | {loop}, names.facts[value.name].arguments)
    whole = names.of("row", index, parts=(loop, value.name), facts=facts)
    if value.ids is None or not len(value.ids):
        return Value(whole)
    if bool((value.ids == value.ids[:1]).all()):
        return Value(whole, value.ids[0])
    flat = value.ids.reshape(len(value.ids), -1)
    if not is_key(aval):
        flat = flat[:, ::2] // 2
    keys = [names.of("key of a row", index, i, parts=(loop,),
                     facts=Facts(facts.loops, facts.arguments, tuple(flat[:MOST_ROWS, i].tolist())))
            for i in range(flat.shape[1])]
    ids = np.array(keys, np.int64)
    return Value(whole, ids.reshape(value.ids.shape[1:]) if is_key(aval) else as_raw(ids).reshape(value.ids.shape[1:]))


def _loop(flow: Flow, eqn: Any, body: Any, consts: Sequence[Value], start: Sequence[Value], xs: Sequence[Value],
          inside: Around) -> tuple[list[Value], list[Value]]:
    """Follows a body: what it carries on unchanged is the same in every iteration, which may show only step by step."""
    unchanged = [False] * len(start)
    loop = inside.loops[-1][0]
    before = len(flow.uses)
    while True:
        carry = [s if same else _carried(flow.names, loop, i, s, v.aval)
                 for i, (s, same, v) in enumerate(zip(start, unchanged, eqn.outvars, strict=False))]
        del flow.uses[before:]
        results = flow.body(flow, body, [*consts, *carry, *xs], inside)
        ended = results[:len(start)]
        now = [a.name == b.name or _same(a, b) for a, b in zip(carry, ended, strict=True)]
        if now == unchanged or all(u or not n for u, n in zip(unchanged, now, strict=True)):
            break
        unchanged = [u or n for u, n in zip(unchanged, now, strict=True)]
    outputs = []
    for i, (s, same, v) in enumerate(zip(start, unchanged, eqn.outvars, strict=False)):
        facts = flow.names.facts[loop]
        outputs.append(s if same else fresh(flow.names, v.aval, ("after", i), facts, (loop,)))
    return outputs, results[len(start):]


def _same(one: Value, other: Value) -> bool:
    return one.ids is not None and other.ids is not None and np.array_equal(one.ids, other.ids)


def _carried(names: Names, loop: int, index: int, start: Value, aval: Any) -> Value:
    """What a loop carries: another value in each iteration, at first the start value."""
    facts = Facts(names.facts[loop].loops | {loop}, names.facts[loop].arguments)
    whole = names.of("carried", index, parts=(loop,), facts=facts)
    if start.ids is None:
        return Value(whole)
    flat = start.ids.reshape(-1) if is_key(aval) else start.ids.reshape(-1)[::2] // 2
    told = [Facts(facts.loops, facts.arguments, (int(k),)) for k in flat]
    ids = np.array([names.of("key carried", index, i, parts=(loop,), facts=f) for i, f in enumerate(told)], np.int64)
    return Value(whole, ids.reshape(start.ids.shape) if is_key(aval) else as_raw(ids).reshape(start.ids.shape))


HANDLERS = {"cond": cond, "scan": scan, "while": while_loop}
