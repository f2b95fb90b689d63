"""The line that names an exception, `torch.OutOfMemoryError: CUDA out of memory`, told apart from a metric's."""

from __future__ import annotations

import builtins
import re

_LINE = re.compile(r"(?P<type>[A-Za-z_][\w.]{0,200}(?:\([\w., ]{1,100}\))?)(?::(?: (?P<message>.*))?)?$", re.DOTALL)
_NAME = re.compile(
    r"(?:Error|Exception|Interrupt|Exit|Failed|Failure|Fault|Timeout|Warning|Group|Unsupported|Panic\w*|Traceback"
    r"|Empty|Full|NotFound|StopIteration|StopAsyncIteration)$"
)
_NUMBER = re.compile(r"[-+]?[\d.]+(?:[eE][-+]?\d+)?\s*%?$|nan$|[-+]?inf$", re.IGNORECASE)

_BUILTIN = frozenset(
    name for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException) and not issubclass(value, Warning)
)
_OF_LIBRARIES = frozenset((
    "OutOfMemoryError", "DistBackendError", "DistNetworkError", "DistStoreError", "AcceleratorError",
    "XlaRuntimeError", "JaxRuntimeError", "TracerArrayConversionError", "TracerBoolConversionError",
    "TracerIntegerConversionError", "ConcretizationTypeError", "UnexpectedTracerError",
    "NonConcreteBooleanIndexError", "ChildFailedError", "ProcessRaisedException", "ProcessExitedException",
    "UnpicklingError", "PicklingError", "LinAlgError", "SafetensorError", "HFValidationError", "ModuleNotFoundError",
    "JSONDecodeError", "BackendCompilerFailed", "ConfigAttributeError", "ConfigKeyError", "MissingMandatoryValue",
    "ScopeParamShapeError", "ScopeParamNotFoundError", "CalledProcessError", "ExceptionGroup",
    "MisconfigurationException", "UFuncTypeError", "TypeCheckError", "InvalidArgumentError", "ResourceExhaustedError",
    "RepositoryNotFoundError",
))
_WRAPS = ("UnfilteredStackTrace", "RayTaskError")
OWN = "traindx: "
"""How a notice of these instruments begins: what happens to them is no fault of the program."""
_KNOWN = _BUILTIN | _OF_LIBRARIES
_ANYWHERE = re.compile(
    r"(?<![\w.'\"`])(?P<type>(?:[A-Za-z_]\w{0,60}\.){0,8}(?:" + "|".join(sorted(_KNOWN, key=len, reverse=True))
    + r"))(?:: (?P<message>\S.*)|\((?P<quoted>['\"].*['\"]),?\))"
)


def exception_line(text: str, *, right_after_frames: bool) -> tuple[str, str] | None:
    """Type and first line of the message where `text` names an exception, else None.

    Directly after the frames of a traceback any dotted name will do; elsewhere (`right_after_frames` false: another
    process may have written in between) the name must look like an exception's.
    """
    match = _LINE.match(text)
    if match is None:
        return None
    name = match["type"]
    bare = name.split("(")[0]
    if bare.isupper():
        return None  # ERROR:, WARNING: and INFO: are levels of a log
    if not right_after_frames and _NAME.search(bare) is None and bare not in _KNOWN:
        return None
    if bare.endswith(_WRAPS) and match["message"]:  # the error itself stands behind it
        return exception_line(match["message"], right_after_frames=right_after_frames) or (name, match["message"])
    return name, match["message"] or ""


def logged_exception(text: str) -> tuple[str, str] | None:
    """Type and message of a known exception that a line mentions without a traceback, else None.

    Only names of Python's and the usual libraries' exceptions count, and a lone number is a metric's value:
    "ValidationError: 0.12" is no exception.
    """
    if text[:1].isspace() or text.startswith(OWN):
        return None
    if text in ("KeyboardInterrupt", "MemoryError", "AssertionError"):
        return text, ""
    match = _ANYWHERE.search(text)
    if match is None or len(text[: match.start()]) > 300:
        return None
    message = match["message"] if match["message"] is not None else match["quoted"].strip("'\"")
    if _NUMBER.match(message.strip()) and not match["type"].endswith("KeyError"):
        return None
    return match["type"], message
