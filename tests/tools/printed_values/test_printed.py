"""What a training script prints under which name, told from its text alone."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traindx_tools.printed_values.names import label, printed_names

LOOP = """
import json, csv, math, torch
net = torch.nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 100)
total = 0.0
for k in range(5):
    for i, (x, y) in enumerate(loader):
        q = torch.nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        q.backward()
        z = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        sched.step()
        total += q.item()
        {write}
"""


def told(code: str) -> dict[str, str]:
    return {p.name: p.meaning.role for p in printed_names([("train.py", textwrap.dedent(code))])}


def held_out(code: str) -> dict[str, bool]:
    return {p.name: p.meaning.held_out for p in printed_names([("train.py", textwrap.dedent(code))])}


WRITTEN = {
    "f-string": 'print(f"[{k}/{n}] a={q.item():.4f} b={opt.param_groups[0][\'lr\']:.2e} c={z:.2f}")',
    "percent": 'print("a=%.4f b=%.2e c=%.2f" % (q.item(), sched.get_last_lr()[0], z))',
    "logger": 'logger.info("a=%.4f b=%.2e c=%.2f", q.item(), sched.get_last_lr()[0], z.item())',
    "format": 'print("a {:.4f} b {:.2e} c {:.2f}".format(q.item(), sched.get_last_lr()[0], z))',
    "named format": 'print("a {p:.4f} b {r} c {s}".format(p=float(q), r=sched.get_last_lr()[0], s=float(z)))',
    "arguments": 'print("a", q.item(), "b", sched.get_last_lr()[0], "c", float(z))',
    "json": 'print(json.dumps({"a": round(q.item(), 4), "b": sched.get_last_lr()[0], "c": float(z)}))',
    "assigned": 'rec = {}; rec["a"] = q.item(); rec["b"] = sched.get_last_lr()[0]; rec["c"] = z.item(); out(rec)',
    "keywords": "bar.set_postfix(a=q.item(), b=sched.get_last_lr()[0], c=z.item())",
    "log": 'self.log("a", q); self.log("b", sched.get_last_lr()[0]); self.log("c", z)',
    "writer": 'w.add_scalar("a", q.item(), i); w.add_scalar("b", sched.get_last_lr()[0], i); w.add_scalar("c", z, i)',
    "rows": 'w.writerow(["a", "b", "c"]); w.writerow([q.item(), sched.get_last_lr()[0], z.item()])',
    "lines": 'f.write("a,b,c\\n"); f.write(f"{q.item()},{sched.get_last_lr()[0]},{z.item()}\\n")',
    "averages": 'print(f"a {total / len(loader)} b {opt.param_groups[-1][\'lr\']} c {float(z)}")',
}


@pytest.mark.parametrize("form", WRITTEN)
def test_a_name_is_told_however_it_is_written(form: str) -> None:
    found = told(LOOP.replace("{write}", WRITTEN[form]))
    assert {k: found.get(k) for k in "abc"} == {"a": "loss", "b": "learning_rate", "c": "grad_norm"}


def test_counters_of_loops() -> None:
    found = told(LOOP.replace("{write}", 'print(f"e {k} n {i + 1} a {q.item()}")'))
    assert (found["e"], found["n"]) == ("epoch", "step")


def test_a_rate_that_a_function_computes() -> None:
    found = told("""
        def lr_at(step):
            return 0.1 * 0.99 ** step
        for step in range(100):
            for g in opt.param_groups:
                g["lr"] = lr_at(step)
            q = crit(net(x), y)
            q.backward()
            print({"s": step, "h": q.item(), "eta": float(f"{lr_at(step):.3g}")})
    """)
    assert found == {"s": "step", "h": "loss", "eta": "learning_rate"}


def test_jax_loss_through_a_jitted_step() -> None:
    found = told("""
        schedule = optax.cosine_decay_schedule(1e-3, 100)
        tx = optax.adam(schedule)
        @jax.jit
        def update(params, state, batch):
            value, grads = jax.value_and_grad(objective)(params, batch)
            updates, state = tx.update(grads, state)
            return optax.apply_updates(params, updates), state, value, optax.global_norm(grads)
        for t in range(100):
            params, state, v, g = update(params, state, next(data))
            print(f"t={t} j={float(v):.4f} g={float(g):.3f} eta={schedule(t):.2e}")
    """)
    assert found == {"t": "step", "j": "loss", "g": "grad_norm", "eta": "learning_rate"}


def test_terms_of_a_sum_and_the_scale_of_a_scaler() -> None:
    found = told("""
        for batch in loader:
            a = recon(x, y)
            b = regulariser(z)
            both = a + 0.1 * b
            scaler.scale(both).backward()
            scaler.step(opt)
            print(f"t {both.item()} a {a.item()} b {b.item()} s {scaler.get_scale()}")
    """)
    assert found == {"t": "loss", "a": "loss_term", "b": "loss_term", "s": "loss_scale"}


def test_values_of_an_evaluation_are_held_out() -> None:
    code = """
        model = Net()
        opt = Adam(model.parameters())
        def evaluate(model, loader):
            model.eval()
            hits, total = 0, 0.0
            with torch.no_grad():
                for x, y in loader:
                    out = model(x)
                    total += F.cross_entropy(out, y).item()
                    hits += (out.argmax(1) == y).sum().item()
            return total / len(loader), hits / n
        for epoch in range(5):
            for x, y in train_loader:
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                opt.step()
            u, v = evaluate(model, held)
            p, r = evaluate(model, train_loader)
            print(f"u={u} v={v} q={loss.item()} p={p}")
    """
    assert told(code) == {"u": "loss", "v": "accuracy", "q": "loss", "p": "loss"}
    assert held_out(code) == {"u": True, "v": True, "q": False, "p": False}


def test_a_block_without_gradients_is_no_evaluation_by_itself() -> None:
    code = """
        model = Net()
        opt = Adam(model.parameters())
        for x, y in loader:
            out = model(x)
            loss = F.cross_entropy(out, y)
            loss.backward()
            opt.step()
            with torch.no_grad():
                a = (out.argmax(1) == y).float().mean()
            print(f"a={a.item()}")
    """
    assert (told(code), held_out(code)) == ({"a": "accuracy"}, {"a": False})


def test_nothing_is_said_where_nothing_is_certain() -> None:
    found = told("""
        cfg = {"lr": 1e-3, "dim": 16}
        for x in loader:
            y = helper(x)
            print(f"gap={y} temp={anneal(x)} mem={torch.cuda.memory_allocated()}")
    """)
    assert not {"gap", "temp", "mem", "dim"} & set(found)


def test_code_of_another_python_is_skipped() -> None:
    good = LOOP.replace("{write}", WRITTEN["f-string"])
    assert next(p.file for p in printed_names([("old.py", "print 'loss', x\n"), ("train.py", good)])) == "train.py"


@pytest.mark.parametrize(("text", "name"), [
    ("[00] val ce ", "val ce"), ("it=", "it"), (" recall@1=", "recall@1"), (" | beat loss: ", "beat loss"),
    ("epoch [", "epoch"), ("/", ""), ("] iter [", "iter"), ("lr (", "lr"), ("", ""), ("time (ms): ", "time"),
])
def test_the_label_is_what_stands_before_the_value(text: str, name: str) -> None:
    assert label(text) == name


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_read_without_an_error(text: str) -> None:
    printed_names([("a.py", text)])
    label(text)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([
    *sorted(WRITTEN.values()), "x = x", "a = b; b = a", "self.x.y = self.x", "def f(): return f()", "q = q / q",
    "total += total", "for i in range(3): f()", "losses.append(losses)"]), max_size=8))
def test_any_code_ends(parts: list[str]) -> None:
    code = LOOP.replace("{write}", "\n        ".join(parts) or "pass")
    printed_names([("a.py", code)])
