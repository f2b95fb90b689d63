"""The stated symptom: read from a person's words, looked up in what was recorded, answered.

`parse` reads, `look_up` answers, `fits` says whether a failure mode can explain what was stated.
"""

from traindx_tools.symptom.answer import SymptomAnswer
from traindx_tools.symptom.kinds import fits
from traindx_tools.symptom.look_up import Cause, answers_to, explained, left_open, look_up, shown
from traindx_tools.symptom.parse import parse, read
from traindx_tools.symptom.stated import Account, StatedSymptom, Subject

__all__ = [
    "Account",
    "Cause",
    "StatedSymptom",
    "Subject",
    "SymptomAnswer",
    "answers_to",
    "explained",
    "fits",
    "left_open",
    "look_up",
    "parse",
    "read",
    "shown",
]
