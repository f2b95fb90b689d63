"""The contracts of losses are those of the functions that this torch has."""

from __future__ import annotations

import inspect

import pytest

from traindx_tools.finding import Severity
from traindx_tools.knowledge.contracts import (
    DOMAINS,
    clashes,
    contract_of,
    contracts,
    given_by,
    losses,
    optax_losses,
    torch_losses,
    written,
)


def test_every_contract_names_arguments_of_its_function() -> None:
    torch = pytest.importorskip("torch")
    for name, contract in torch_losses().items():
        parameters = inspect.signature(getattr(torch.nn.functional, name)).parameters
        assert [a.name for a in contract.arguments if a.name not in parameters] == [], name
        assert all(not a.switch or a.switch in parameters for a in contract.arguments), name
        if contract.directed:
            assert [a.name for a in contract.arguments[:2]] == list(parameters)[:2], name


def test_a_domain_may_depend_on_a_setting() -> None:
    (target,) = [a for a in torch_losses()["kl_div"].arguments if a.name == "target"]
    assert target.domain_for({"log_target": True}) == "log-probabilities"
    assert target.domain_for({"log_target": False}) == target.domain_for({}) == "probabilities"


def test_an_unknown_domain_is_named() -> None:
    with pytest.raises(ValueError, match=r"my_loss\.input: expected a domain of .*, got percent"):
        contracts({"my_loss": {"arguments": {"input": {"domain": "percent"}}}})


def test_the_contracts_of_optax_name_its_arguments_in_order() -> None:
    optax = pytest.importorskip("optax")
    for name, contract in optax_losses().items():
        parameters = list(inspect.signature(getattr(optax, name)).parameters)
        assert [a.name for a in contract.arguments] == parameters[:2], name


def test_every_clash_is_of_a_domain_that_is_wanted_and_of_one_that_something_gives() -> None:
    operations = ("softmax", "sigmoid", "log_softmax", "linear", "relu", "tanh", "softplus", "exp")
    given = {given_by(operation) for operation in operations}
    for (wanted, got), clash in clashes().items():
        assert wanted in DOMAINS
        assert got in given
        assert Severity(clash.severity)
        assert all(name in losses() for name in clash.losses)
    assert given_by("erf") == ""
    assert written("softmax") == "softmax output"
    assert contract_of("no_loss") is None
