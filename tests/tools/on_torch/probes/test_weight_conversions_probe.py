"""Loaded weights in another form: the one conversion that undoes it is named; sound weights are left alone."""

from __future__ import annotations

import gc
import weakref

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from traindx_tools.on_torch.conversions.candidates import Candidate  # noqa: E402
from traindx_tools.on_torch.conversions.search import search  # noqa: E402
from traindx_tools.on_torch.probes.weight_conversions import WeightConversionsProbe  # noqa: E402

CLASSES, LENGTH = 12, 8


class Tagger(nn.Module):
    """Names, at each place, the token of two places before: the gates of the recurrence have to be right."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(CLASSES, 16)
        self.memory = nn.LSTM(16, 24, batch_first=True)
        self.out = nn.Linear(24, CLASSES)

    def forward(self, x):
        return self.out(self.memory(self.table(x))[0])


class Turned(nn.Module):
    """Attention with rotary positions of interleaved pairs, then two blocks of a residual stack."""

    def __init__(self, width=32):
        super().__init__()
        self.table = nn.Embedding(CLASSES, width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))
                                    for _ in range(2))
        self.out = nn.Linear(width, CLASSES)
        angles = torch.arange(LENGTH)[:, None] / 4 ** torch.arange(width // 2)
        self.register_buffer("turn", torch.polar(torch.ones_like(angles), angles), persistent=False)

    def forward(self, x):
        x = self.table(x)
        q, k = (torch.view_as_real(torch.view_as_complex(m(x).unflatten(-1, (-1, 2))) * self.turn).flatten(-2)
                for m in (self.query, self.key))
        x = x + F.scaled_dot_product_attention(q, k, self.value(x), is_causal=True)
        for block in self.blocks:
            x = x + block(x)
        return self.out(x)


class Seen(nn.Module):
    """A small convolution whose places are flattened."""

    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(1, 6, 3, padding=1)
        self.hidden, self.out = nn.Linear(6 * 16, 32), nn.Linear(32, CLASSES)

    def forward(self, x):
        return self.out(F.relu(self.hidden(F.relu(self.body(x)).flatten(1))))


def words(n=64):
    x = torch.randint(0, CLASSES, (n, LENGTH))
    return x, torch.cat([torch.zeros(n, 2, dtype=torch.int64), x[:, :-2]], 1)


def pictures(n=64):
    y = torch.randint(0, CLASSES, (n,))
    x = 0.3 * torch.randn(n, 1, 4, 4)
    x[torch.arange(n), 0, y // 4, y % 4] += 2
    return x, y


def fit(net, batches, steps, rate=5e-3):
    optimizer = torch.optim.Adam(net.parameters(), rate)
    for _ in range(steps):
        x, y = batches()
        scores = net(x)
        loss = F.cross_entropy(scores.flatten(0, -2), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@pytest.fixture(scope="module")
def trained():
    """State and batches of each model after training; nobody changes them."""
    found = {}
    for kind, batches in ((Tagger, words), (Turned, words), (Seen, pictures)):
        torch.manual_seed(0)
        net = kind()
        assert fit(net, batches, 400) < 0.5, kind
        found[kind] = {n: t.clone() for n, t in net.state_dict().items()}, batches
    return found


def told(watching, trained, kind, damage, into=None):
    state, batches = trained[kind]
    state = {n: t.clone() for n, t in state.items()}
    damage(state)
    torch.manual_seed(1)
    with watching(WeightConversionsProbe) as w:
        net = kind()
        net.load_state_dict(state)
        if into is not None:
            into(net)
        fit(net, batches, 3, 1e-4)
    return w.findings


@pytest.mark.parametrize(("kind", "damage", "form"), [
    (Tagger, lambda x: (x + 1) % CLASSES, "table.weight: its rows shifted by 1"),  # as much as "the ids by one"
    (Seen, lambda x: x / 255, "the input times"),
    (Seen, lambda x: x.transpose(-1, -2), "the input with its last two axes exchanged"),
    (Seen, lambda x: x + 0.05, None),
])
def test_a_batch_in_another_form_than_the_weights_know(watching, trained, kind, damage, form):
    state, batches = trained[kind]

    def given():
        x, y = batches()
        return damage(x), y

    with watching(WeightConversionsProbe) as w:
        net = kind()
        net.load_state_dict(state)
        fit(net, given, 3, 1e-4)
    told = [f.measured["form"] for f in w.findings]
    assert (len(told) == 1 and told[0].startswith(form)) if form else not told


def gates(state):
    for name in state:
        if name.startswith("memory."):
            i, f, g, o = state[name].chunk(4)
            state[name] = torch.cat([i, g, f, o])


def halves(state):
    for name in ("query.weight", "key.weight", "query.bias", "key.bias"):
        t = state[name]
        state[name] = t.reshape(-1, 2, *t.shape[1:]).transpose(0, 1).reshape(t.shape)


def exchanged(state):
    for part in ("weight", "bias"):
        a, b = f"key.{part}", f"value.{part}"
        state[a], state[b] = state[b], state[a]


def flattened(state):
    state["hidden.weight"] = state["hidden.weight"].reshape(32, 6, 16).transpose(1, 2).reshape(32, 96)


def shifted(state):
    state["table.weight"] = state["table.weight"].roll(1, 0)


def scaled(state):
    state["blocks.1.2.weight"] *= 16


def transposed(state):
    state["value.weight"] = state["value.weight"].T.contiguous()


@pytest.mark.parametrize(("kind", "damage", "form", "name"), [
    (Tagger, gates, "order", "memory.bias_hh_l0"), (Tagger, shifted, "shifted", "table.weight"),
    (Turned, exchanged, "exchange", "key.bias"), (Turned, transposed, "transposed", "value.weight"),
    (Turned, scaled, "scaled", "blocks.1.2.weight"), (Turned, halves, "interleaved", "key.weight"),
    (Seen, flattened, "flattened", "hidden.weight"),
])
def test_the_form_that_heals_is_named(watching, trained, kind, damage, form, name):
    (finding,) = told(watching, trained, kind, damage)
    assert (finding.rule, finding.measured["kind"]) == ("T345", form)
    assert finding.measured["name"] == name
    assert finding.measured["healed"] < 0.6 < finding.measured["loss"]


def test_sound_weights_are_left_alone(watching, trained):
    for kind in trained:
        assert told(watching, trained, kind, lambda state: None) == []


def test_a_new_head_another_task_and_fresh_weights_are_no_form(watching, trained):
    def new_head(net):
        net.out.reset_parameters()

    def fresh(net):
        for module in net.modules():
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()

    for kind in trained:
        assert told(watching, trained, kind, lambda state: None, new_head) == []
        assert told(watching, trained, kind, lambda state: None, fresh) == []


def test_classes_in_an_order_that_no_conversion_has(watching, trained):
    def mixed(state):
        order = torch.randperm(CLASSES, generator=torch.Generator().manual_seed(3))
        state["out.weight"], state["out.bias"] = state["out.weight"][order], state["out.bias"][order]

    assert told(watching, trained, Seen, mixed) == []


def test_the_training_is_the_same_bit_for_bit(watching, trained):
    state, batches = trained[Tagger]

    def run():
        torch.manual_seed(1)
        net = Tagger()
        net.load_state_dict({n: t.roll(1, 0) for n, t in state.items()})
        fit(net, batches, 3)
        return torch.cat([p.detach().flatten() for p in net.parameters()]), torch.rand(4)

    plain = run()
    with watching(WeightConversionsProbe):
        watched = run()
    assert all(torch.equal(a, b) for a, b in zip(plain, watched, strict=True))


def test_one_of_several_processes_is_not_asked(watching, trained, monkeypatch):
    """A pass that one process makes alone would wait for the others for ever."""
    monkeypatch.setattr("traindx_tools.on_torch.probes.weight_conversions.world_size", lambda: 2)
    assert told(watching, trained, Tagger, gates) == []


NAMES = [a + b for a in "abcdef" for b in "klmnopq"]  # numbers would be blocks of one stack


def conversions(alive, count=40):
    for at in range(count):
        tensor = torch.full((8,), float(at))
        alive.append(weakref.ref(tensor))
        yield Candidate(NAMES[at], "order" if at < count - 1 else "zeroed", {f"{NAMES[at]}.weight": tensor})
        del tensor


def test_only_the_best_conversion_is_kept():
    alive = []
    found = search(lambda values: 5.0 if not values else 1.0 if float(next(iter(values.values()))[0]) == 7 else 4.0,
                   conversions(alive), {f"{n}.weight": i for i, n in enumerate(NAMES)}, 60.0)
    gc.collect()
    assert (found.best.said, found.tried, found.others) == (NAMES[7], 40, 4.0)
    assert sum(r() is not None for r in alive) == 1


def test_where_time_ended_it_a_size_is_no_proof():
    """The last layer, which says what guessing gives, comes last."""
    sized = [Candidate(n, "scaled", {f"{n}.weight": torch.ones(8)}) for n in NAMES[:30]]
    ids, loss = {f"{n}.weight": i for i, n in enumerate(NAMES)}, lambda v: 5.0 if not v or 3 not in v else 1.0
    whole = [*sized, Candidate("the last", "zeroed", {f"{NAMES[0]}.weight": torch.zeros(8)})]
    assert search(loss, whole, ids, 60.0).best is sized[3]
    clock = iter([0.0, *[1.0] * 20, *[99.0] * 20])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("traindx_tools.on_torch.conversions.search.time.perf_counter", lambda: next(clock))
        found = search(loss, whole, ids, 60.0)
    assert found.left
    assert found.best is None


def test_what_loads_nothing_is_not_looked_at(watching):
    with watching(WeightConversionsProbe) as w:
        fit(Seen(), pictures, 3)
    assert w.findings == []
