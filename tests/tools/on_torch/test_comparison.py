"""Two sides on one batch: the layer that parts is named, and equal sides are called equal."""

from __future__ import annotations

import copy
import warnings

import pytest

torch = pytest.importorskip("torch")

from traindx_tools.on_torch.comparison import (  # noqa: E402
    check_log_prob_ratio,
    compare,
    compare_checkpoints,
    compare_compiled,
    compare_dtypes,
    compare_modes,
    explain_logits,
)
from traindx_tools.on_torch.probe import Scene  # noqa: E402
from traindx_tools.on_torch.probes.autocast import AutocastProbe  # noqa: E402

nn = torch.nn


class Block(nn.Module):
    def __init__(self, width, *, scale=1.0):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.scale = scale

    def forward(self, x):
        return x + self.scale * self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def blocks(depth=4, width=16, scale=1.0):
    torch.manual_seed(0)
    return nn.Sequential(*(Block(width, scale=scale) for _ in range(depth)), nn.Linear(width, 8))


def image_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.5), nn.Conv2d(8, 8, 3),
                         nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8 * 16, 4))


def test_equal_models_are_equal_and_nothing_is_found():
    model = blocks()
    seen = compare(model, copy.deepcopy(model), torch.randn(3, 16))
    assert seen.same
    assert seen.findings() == ()
    assert seen.output == 0.0


def test_one_changed_layer_is_told_apart_from_those_that_carry_it_on():
    model, other = blocks(), blocks()
    with torch.no_grad():
        other[2].up.weight[0, 0] += 0.5
    seen = compare(model, other, torch.randn(3, 16), names=("reference", "port"))
    assert seen.first.path == "2.up"
    assert [x.path for x in seen.layers if x.parts] == ["2.up"]
    assert seen.layers[-1].total > 0
    (finding,) = seen.findings()
    assert finding.rule == "T951"
    assert finding.where.module == "2.up"
    assert "reference and port part at 2.up" in finding.statement
    assert "<- parts here" in seen.table()


def test_code_between_layers_is_found_where_every_layer_agrees():
    seen = compare(blocks(), blocks(scale=0.5), torch.randn(3, 16))
    assert seen.first is None
    assert seen.between == ("0.down", "1.norm")
    assert seen.findings()[0].measured["kind"] == "between"


def test_batch_statistics_against_running_statistics():
    model = image_net()
    buffers = {n: b.clone() for n, b in model.named_buffers()}
    modes = [m.training for m in model.modules()]
    seen = compare_modes(model, torch.randn(8, 3, 8, 8) * 5 + 3)
    assert seen.first.path == "1"
    assert "running statistics" in seen.findings()[0].statement
    assert all(torch.equal(b, buffers[n]) for n, b in model.named_buffers())
    assert [m.training for m in model.modules()] == modes


def test_a_model_without_batchnorm_is_the_same_in_both_modes_though_it_has_dropout():
    model = nn.Sequential(nn.Linear(16, 16), nn.Dropout(0.3), blocks())
    assert compare_modes(model, torch.randn(4, 16)).same
    assert compare_modes(model, torch.randn(4, 16), dropout=True).first.path == "1"


def test_a_layer_that_overflows_half_precision_is_named_and_bfloat16_is_within_tolerance():
    model = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 4))
    assert compare_dtypes(model, torch.randn(4, 16), torch.bfloat16).same
    with torch.no_grad():
        model[1].weight.mul_(1e6)
    seen = compare_dtypes(model, torch.randn(4, 16), torch.float16)
    assert seen.first.path == "1"
    assert seen.findings()[0].measured["own"] == "inf"


def test_checkpoints_and_one_that_does_not_fit():
    model, other = blocks(), blocks()
    with torch.no_grad():
        other[4].bias += 1
    seen = compare_checkpoints(model, model.state_dict(), other.state_dict(), torch.randn(2, 16))
    assert seen.first.path == "4"
    with pytest.raises(ValueError, match="does not fit"):
        compare_checkpoints(model, model.state_dict(), {"x": torch.ones(1)}, torch.randn(2, 16))


def test_wrapped_models_are_matched_by_their_plain_paths_and_strangers_are_refused():
    class Wrapped(nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module

        def forward(self, x):
            return self.module(x)

    assert compare(blocks(), Wrapped(blocks()), torch.randn(2, 16)).same
    with pytest.raises(ValueError, match="no layer of the first side"):
        compare(blocks(), nn.ModuleDict({"z": nn.Linear(16, 8)})["z"], torch.randn(2, 16))


def test_layers_that_one_side_never_calls():
    class Skips(nn.Module):
        def __init__(self, skip):
            super().__init__()
            self.a, self.b, self.skip = nn.Linear(4, 4), nn.Identity(), skip

        def forward(self, x):
            return self.a(x) if self.skip else self.b(self.a(x))

    torch.manual_seed(0)
    one = Skips(False)
    other = copy.deepcopy(one)
    other.skip = True
    seen = compare(one, other, torch.randn(2, 4))
    assert seen.only_first == ("b",)
    assert seen.findings()[0].measured["kind"] == "missing"


@pytest.mark.slow
def test_eager_against_compiled_agrees_and_a_backend_that_is_wrong_is_caught():
    def doubled(graph, _):
        def run(*args):
            out = graph.forward(*args)
            return tuple(o * 2 if isinstance(o, torch.Tensor) and o.shape[-1] == 32 else o for o in out)

        return run

    model = blocks(depth=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert compare_compiled(model, torch.randn(2, 16), backend="eager").same
        seen = compare_compiled(model, torch.randn(2, 16), backend=doubled)
    assert seen.first.path == "0.up"
    torch._dynamo.reset()


def test_the_ratio_is_one_before_the_first_update_or_it_is_said():
    old = torch.log_softmax(torch.randn(4, 7, 11), -1)[..., 0]
    assert check_log_prob_ratio(old, old + 1e-6) == ()
    assert check_log_prob_ratio(old.bfloat16(), old) == ()
    (finding,) = check_log_prob_ratio(old, old + 0.05)
    assert finding.measured["lean"] == "one-sided"
    mask = torch.zeros(4, 7, dtype=torch.bool)
    mask[:, 0] = True
    new = old.clone()
    new[:, 1:] += 1
    assert check_log_prob_ratio(old, new, mask) == ()
    with pytest.raises(ValueError, match="no token"):
        check_log_prob_ratio(old, new, torch.zeros(4, 7))
    with pytest.raises(ValueError, match="one shape"):
        check_log_prob_ratio(old, new[:2])


def test_why_logits_differ():
    torch.manual_seed(1)
    a = torch.randn(2, 6, 50) * 3
    assert explain_logits(a, a + 7.0).why == "same"
    cooled = explain_logits(a, a / 0.7)
    assert (cooled.why, cooled.value) == ("temperature", pytest.approx(0.7, rel=1e-3))
    assert explain_logits(a, torch.roll(a, 1, dims=-2)).why == "shifted"
    cut = a.masked_fill(a < a.topk(5).values[..., -1:], float("-inf"))
    assert explain_logits(a, cut).why == "truncated"
    assert explain_logits(a, a.bfloat16()).why in ("same", "rounding")
    assert explain_logits(a, torch.randn(2, 6, 50)).why == "unexplained"
    with pytest.raises(ValueError, match="one shape"):
        explain_logits(a, a[..., :10])


class Notes:
    rank = 0

    def __init__(self):
        self.findings = []

    def metrics(self, step, values):
        pass

    def finding(self, finding):
        self.findings.append(finding)


def autocast_probe(model):
    notes = Notes()
    probe = AutocastProbe(Scene(notes, models=[model]))

    def call(x):
        probe.before_forward(model, (x,), {})
        return model(x)

    return notes, call


def test_weights_swapped_inside_one_autocast_region_are_named():
    model = nn.Linear(4, 4)
    notes, call = autocast_probe(model)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        call(torch.randn(2, 4))
        with torch.no_grad():
            model.weight.mul_(2)
        call(torch.randn(2, 4))
    assert [f.rule for f in notes.findings] == ["T953"]
    assert notes.findings[0].where.module == "weight"


def test_regions_of_their_own_or_without_cache_or_without_a_change_are_left_alone():
    model = nn.Linear(4, 4)
    notes, call = autocast_probe(model)
    for _ in range(3):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            call(torch.randn(2, 4))
            call(torch.randn(2, 4))
        with torch.no_grad():
            model.weight.mul_(2)
    with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):
        call(torch.randn(2, 4))
        with torch.no_grad():
            model.weight.mul_(2)
        call(torch.randn(2, 4))
    call(torch.randn(2, 4))
    assert notes.findings == []
