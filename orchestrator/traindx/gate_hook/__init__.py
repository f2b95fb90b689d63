"""The gate inside Claude Code: what the plugin's hooks decide. Standard library only, started anew for every event.

State machine of one workspace: gather -> (a person approves) fix -> (verification fails) gather -> ... -> halted at
three strikes, until the person decides. The judgement whether a call may happen is `policy.allowed`, as everywhere.
"""
