"""A configuration names something that the code does not know, or lacks what the code asks for.

Unexpected keyword arguments, missing required ones, KeyError and attribute errors on configuration objects, Hydra's and
OmegaConf's struct errors, registry look-ups, argparse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import Incident, incidents
from traindx_tools.on_logs.tracebacks.report import report, short
from traindx_tools.rules import Rule

PRIORITY = 65

RULE = Rule(
    id="L525",
    name="config-key",
    title="Configuration and code name different things",
    severity=Severity.CRITICAL,
    sees="Unexpected or missing keyword arguments, keys missing in configurations, registries, argparse, struct "
         "errors.",
    matters="The run does not start. A key that is ignored instead of refused is worse: it changes nothing silently.",
    alike=("An argument that the library renamed (L524).", "A key missing in a data sample: a KeyError in "
                                                           "__getitem__."),
    confirm=("Print the configuration as the program sees it, and compare key by key with the signature or schema.",
             "Look for the key's spelling in the whole project: grep -rn KEY ."),
)

_KINDS = tuple((kind, re.compile(pattern), words) for kind, pattern, words in (
    ("unexpected-keyword", r"(?:(?P<where>[\w.<>]+)\(\) )?got an unexpected keyword argument '(?P<name>\w+)'",
     "{where} does not know the argument {name}"),
    ("missing-argument", r"(?:(?P<where>[\w.<>]+)\(\) )?missing \d+ required (?:positional|keyword-only) arguments?: "
                         r"'(?P<name>\w+)'", "{where} was not given its argument {name}"),
    ("struct-key", r"Key '(?P<name>[\w.]+)' (?:is not in struct|not in '\w+')|ConfigAttributeError|ConfigKeyError"
                   r"|Could not override '(?P<other>[\w.]+)'", "the configuration has no key {name}"),
    ("mandatory-missing", r"Missing mandatory value: (?P<name>[\w.]+)|MissingMandatoryValue", "the mandatory "
                                                                                              "{name} is not set"),
    ("argparse", r"(?:error: )?unrecognized arguments: (?P<name>\S+)|the following arguments are required: "
                 r"(?P<other>\S+)",
     "argument {name} is not known to the script"),
    ("registry", r"(?P<name>\S+) is not in the .{0,40}registry|Unknown (?P<what>model|optimizer|scheduler|dataset"
                 r"|loss|config)\w*"
                 r"[: ]|not a (?:valid|registered|known) (?:model|optimizer|scheduler|dataset)",
     "a name of the configuration is not registered"),
    ("namespace-attribute", r"'(?P<where>Namespace|\w*[Cc]onfig\w*|\w*Args|\w*Arguments|DictConfig|EasyDict)' "
                            r"object has no "
                            r"attribute '(?P<name>\w+)'", "{where} has no {name}"),
    ("duplicate-keyword", r"got multiple values for (?:keyword )?argument '(?P<name>\w+)'", "argument {name} was "
                                                                                            "given twice"),
    ("extra-fields", r"extra (?:fields|inputs) (?:are )?not permitted|validation errors? for \w+",
     "the configuration does not validate"),
))
_CONFIG_CODE = re.compile(r"\b(?:cfg|config|conf|args|hparams|hp|settings|hyper\w*|yaml"
                          r"|options)\b\W*[\[.]", re.IGNORECASE)


def claims(event: ErrorEvent) -> bool:
    """Arguments and keys; a bare KeyError only where the failing code reads a configuration."""
    if event.kind != "exception":
        return False
    if event.type.split(".")[-1] == "KeyError":
        frame = event.user_frame or (event.frames[-1] if event.frames else None)
        return frame is not None and _CONFIG_CODE.search(frame.code) is not None
    text = f"{event.type}: {event.message}"
    return any(p.search(text) for _, p, _ in _KINDS)


def check(run: Run) -> Iterator[Finding]:
    """One finding a place."""
    for incident in incidents(run, RULE.id):
        yield _judged(incident)


def _judged(incident: Incident) -> Finding:
    if incident.error.type.split(".")[-1] == "KeyError":
        key = short(incident.text).strip("'\"")
        return report(RULE, incident, f"the configuration has no key '{key}'", bearing=Bearing.SIGN,
                      measured={"kind": "missing-key", "name": key})
    text = f"{incident.error.type}: {incident.text}"
    kind, match, words = next((k, m, w) for k, p, w in _KINDS for m in [p.search(text)] if m is not None)
    groups = match.groupdict()
    found: dict[str, Value] = {k: v for k, v in groups.items() if v is not None and k != "other"}
    name = groups.get("name") or groups.get("other")
    if name is None and "{name}" in words:
        words = f"{{where}} does not fit ({short(incident.text)})"
    if name is not None:
        found["name"] = name
    statement = words.format(where=groups.get("where") or "the configuration", name=name)
    return report(RULE, incident, statement, bearing=Bearing.SIGN, measured={"kind": kind, **found})
