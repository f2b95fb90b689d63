#!/bin/sh
# The gate's launcher, called by Claude Code for every event: `sh gate.sh EVENT [call]`, the event as JSON on standard input.
# While no debug session is open anywhere it ends here, without starting Python. It refuses a tool call (exit 2) where
# a session is open and no Python can be started: the gate fails closed. Every process that it starts costs each call.

[ "$TRAINDX_GATE" = off ] && exit 0
event=$1
state=${TRAINDX_GATE_STATE:-${XDG_STATE_HOME:-$HOME/.local/state}/traindx/gate}

# Is there a mark in this folder of the state?
marked() {
    for mark in "$state/$1"/*; do
        [ -e "$mark" ] && return 0
    done
    return 1
}

# Starts the gate on standard input. A Python that is too old (75) has not read it: the next one is tried. A known path
# goes first: a `python3` that a version manager puts in front can take longer to start than the gate itself.
start() {
    tried=
    for python in "$TRAINDX_PYTHON" /usr/bin/python3 /usr/local/bin/python3 /opt/homebrew/bin/python3 python3 python; do
        [ -n "$python" ] && command -v "$python" >/dev/null 2>&1 || continue
        tried="$tried $python"
        "$python" -I -S "${0%/*}/gate.py" "$event"
        code=$?
        [ "$code" -eq 75 ] && continue
        [ "$code" -ne 0 ] && [ "$event" = PreToolUse ] && exit 2
        exit "$code"
    done
    echo "traindx gate: it needs Python 3.10 or newer and found${tried:- none}. Name one in TRAINDX_PYTHON; a person can" \
        "switch the gate off with TRAINDX_GATE=off." >&2
    [ "$event" = PreToolUse ] && exit 2
    exit 1
}

[ "$event" = SessionStart ] && marked ended && start
if marked open; then
    # Before an approval nothing is to be noted after an edit or a command.
    [ "$2" = call ] && ! marked fix && exit 0
    start
fi
case $event in PreToolUse | UserPromptSubmit) ;; *) exit 0 ;; esac

# What may open a session, switch the gate, or decide in a person's place.
input=$(cat)
case $event:$input in
    UserPromptSubmit:*[Tt][Rr][Aa][Ii][Nn][Dd][Xx]* | UserPromptSubmit:*-debug*) ;;
    UserPromptSubmit:*[Dd]ebug*session*) ;;
    PreToolUse:*Skill*-debug* | PreToolUse:*-debug*Skill*) ;;
    PreToolUse:*traindx*approve* | PreToolUse:*traindx*reject* | PreToolUse:*traindx*revise*) ;;
    PreToolUse:*traindx.session* | PreToolUse:*traindx/gate/* | PreToolUse:*TRAINDX_GATE*) ;;
    *) exit 0 ;;
esac
printf '%s' "$input" | (start)
