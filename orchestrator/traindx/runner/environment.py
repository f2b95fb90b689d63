"""The environment of a protected command: its own, without ways to the person's terminals and sockets."""

from __future__ import annotations

from collections.abc import Mapping

from traindx.runner.caches import cache_variables

REMOVED = ("TMUX", "TMUX_PANE", "STY", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_TTY", "GPG_AGENT_INFO", "DISPLAY",
           "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "VSCODE_IPC_HOOK_CLI", "GIT_ASKPASS",
           "DOCKER_HOST", "KITTY_LISTEN_ON", "WEZTERM_UNIX_SOCKET", "ALACRITTY_SOCKET", "ZELLIJ")


def environment_of(cache: str, given: Mapping[str, str], temporary: str) -> dict[str, str]:
    """The variables with which the command starts. Called within the confinement: it fills the private caches.

    `temporary`: the private folder as the command sees it.
    """
    kept = {name: value for name, value in given.items() if name not in REMOVED}
    kept |= cache_variables(cache, given)
    options = kept.get("PYTEST_ADDOPTS", "")
    kept |= {"TMPDIR": temporary, "TMP": temporary, "TEMP": temporary, "PYTHONDONTWRITEBYTECODE": "1",
             "GIT_OPTIONAL_LOCKS": "0", "PYTEST_ADDOPTS": f"{options} -p no:cacheprovider".strip()}
    return kept
