"""Socket addresses as the kernel takes them: which of them lead to where something is done in a person's name."""

from __future__ import annotations

import struct

UNIX = struct.pack("=H", 1)
_INET, _INET6 = struct.pack("=H", 2), struct.pack("=H", 10)
_MAPPED = b"\0" * 10 + b"\xff\xff"
_V6_LOOPBACK = b"\0" * 15 + b"\1"

_LOGINS = frozenset({22, 23, 512, 513, 514, 2375, 2376, 3389})
"""ssh, telnet, r-commands, a container engine, remote desktop: each runs commands outside of any confinement."""
_SCREENS = (range(5900, 6000), range(6000, 6064))
"""VNC and X11 (also forwarded): each types into the person's windows."""


def types_for_the_person(address: bytes) -> bool:
    """True for a login, a container engine or a screen of this machine itself."""
    family = address[:2]
    if family == _INET and len(address) >= 8:
        port, host = int.from_bytes(address[2:4], "big"), address[4:8]
    elif family == _INET6 and len(address) >= 24:
        port, host = int.from_bytes(address[2:4], "big"), address[8:24]
    else:
        return False
    watched = port in _LOGINS or any(port in ports for ports in _SCREENS)
    return watched and _is_here(address, host)


def _is_here(address: bytes, host: bytes) -> bool:
    """True where the host is this machine: a loopback address, or one that it would answer from itself."""
    bare = host[12:] if host.startswith(_MAPPED) else host
    if bare in (b"\0" * 4, b"\0" * 16, _V6_LOOPBACK) or (len(bare) == 4 and bare[0] == 127):
        return True
    import socket

    family = socket.AF_INET if len(bare) == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as trial:
        try:
            trial.connect((socket.inet_ntop(family, bare), 9))
            return bool(socket.inet_pton(family, trial.getsockname()[0]) == bare)
        except OSError:
            return False
