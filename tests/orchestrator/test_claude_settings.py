"""Settings by option, environment and project; keys taken out of every text."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx.investigators.claude_code.redaction import redacted, redacted_json
from traindx.settings import NAMES, Settings, read_settings
from traindx_tools.errors import BadUsage


def project(folder: Path, text: str) -> Path:
    (folder / "pyproject.toml").write_text(text)
    return folder


def test_options_come_before_the_environment_and_that_before_the_project(tmp_path: Path):
    project(tmp_path, '[tool.traindx]\nmodel = "of-project"\nspecialist_model = "small"\neffort = "low"\n')
    made = read_settings(tmp_path, {"model": "of-option", "web": None},
                         {"TRAINDX_MODEL": "of-environment", "TRAINDX_EFFORT": "high", "TRAINDX_WEB": ""})
    assert (made.model, made.specialist_model, made.effort, made.web) == ("of-option", "small", "high", False)


def test_a_project_may_lower_a_budget_and_never_raise_one(tmp_path: Path):
    project(tmp_path, "[tool.traindx]\ndollars_all = 500.0\ndollars_each = 0.25\nconcurrency = 2\nturns_each = 900\n")
    made = read_settings(tmp_path)
    assert (made.dollars_all, made.dollars_each) == (Settings.dollars_all, 0.25)
    assert (made.concurrency, made.turns_each) == (2, Settings.turns_each)
    assert read_settings(tmp_path, {"dollars_all": 500.0}).dollars_all == 500.0
    assert read_settings(tmp_path, {}, {"TRAINDX_DOLLARS_ALL": "7.5"}).dollars_all == 7.5


@pytest.mark.parametrize("line", ['cli_path = "/tmp/evil"', "web = true", 'backend = "claude"', "retries = 10",
                                  'token_prices = "0,0"'])
def test_a_project_does_not_choose_what_is_run_or_spent(tmp_path: Path, line: str):
    with pytest.raises(BadUsage, match="may not set"):
        read_settings(project(tmp_path, f"[tool.traindx]\n{line}\n"))


@pytest.mark.parametrize("text", ["[tool.traindx\n", "\0", "tool = 3", "[tool]\nother = 1", ""])
def test_a_broken_project_file_is_no_reason_to_stop(tmp_path: Path, text: str):
    assert read_settings(project(tmp_path, text)) == Settings()


@pytest.mark.parametrize(("options", "message"), [
    ({"backend": "gpt"}, "expected one of offline, auto, claude"), ({"effort": "huge"}, "expected one of low"),
    ({"concurrency": 0}, "a number from 1 to 64"), ({"concurrency": 2.5}, "a number from 1"),
    ({"turns_each": "many"}, "a number from 1"), ({"dollars_all": 0}, "a number above 0"),
    ({"dollars_all": float("nan")}, "above 0"), ({"seconds_each": -1}, "above 0"), ({"seconds_all": "inf"}, "above 0"),
    ({"web": "perhaps"}, "true or false"), ({"model": "a\0b"}, "expected a text"), ({"model": 3}, "expected a text"),
    ({"prices": 1}, "there is no setting"), ({"token_prices": "3"}, "dollars for a million tokens"),
    ({"token_prices": "3,x"}, "dollars for a million"), ({"token_prices": "-1,2"}, "dollars for a million"),
    ({"concurrency": True}, "a number from 1"),
])
def test_bad_settings_are_said_with_their_source(tmp_path: Path, options: dict[str, object], message: str):
    with pytest.raises(BadUsage, match=message):
        read_settings(tmp_path, options)


def test_the_source_of_a_bad_setting_is_named(tmp_path: Path):
    with pytest.raises(BadUsage, match="the variable TRAINDX_CONCURRENCY"):
        read_settings(tmp_path, {}, {"TRAINDX_CONCURRENCY": "x"})
    with pytest.raises(BadUsage, match=r"pyproject\.toml: there is no setting 'modle'"):
        read_settings(project(tmp_path, '[tool.traindx]\nmodle = "x"\n'))


def test_the_processes_variables_are_set_in_code_alone():
    assert "environment" not in NAMES


@pytest.mark.parametrize("secret", [
    "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUv", "ghp_0123456789abcdefghijABCDEFGHIJ", "hf_abcdefghijklmnopqrstuvwx",
    "AKIAIOSFODNN7EXAMPLE", "glpat-abcdefghij0123456789", "xoxb-1234567890-abcdef",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    "AIzaSyA1234567890abcdefghijklmnopqrstu", "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----",
])
def test_keys_are_taken_out_wherever_they_stand(secret: str):
    text = f"loss 0.5 {secret} step 3"
    assert secret not in redacted(text)
    assert redacted(text).startswith("loss 0.5 [redacted]")
    assert secret.split("\n")[0] not in str(redacted_json({"a": [{"b": text}]}))


@pytest.mark.parametrize(("text", "kept"), [
    ("WANDB_API_KEY=0123456789abcdef", "WANDB_API_KEY=[redacted]"),
    ('api_key: "topsecret1"', "api_key: [redacted]"), ("password = hunter2hunter2!", "password = [redacted]"),
    ("Authorization: Bearer abcdefgh12345", "Authorization: Bearer [redacted]"),
    ("https://user:pass1234@host/x", "https://[redacted]@host/x"),
])
def test_named_secrets_are_taken_out_and_their_names_stay(text: str, kept: str):
    assert redacted(text) == kept


@pytest.mark.parametrize("text", [
    "token = tokenizer.encode(text)", "api_key = os.environ", "max_tokens: 4096", "loss/token 2.31",
    "step 400 loss nan",
    "password = None", "pad_token_id=50256", "secret_key = config.secret", "num_tokens=1048576",
    "/home/user/skeleton/sk-lr.py",
])
def test_training_code_and_logs_stay_as_they_are(text: str):
    assert redacted(text) == text


def test_values_of_secret_keys_are_taken_out_of_json():
    assert redacted_json({"api_key": "abcdefghijk", "loss": 0.5, "n": None}) == {
        "api_key": "[redacted]", "loss": 0.5, "n": None}
    assert len(redacted_json("x" * 100_000)) < 21_000
