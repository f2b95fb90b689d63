#!/bin/sh
# The gate's launcher, called by Claude Code for every event: `sh gate.sh EVENT` with the event as JSON on standard input.
# While no debug session is open anywhere it ends here, without starting Python. It refuses a tool call (exit 2) where
# a session is open and no Python can be started: the gate fails closed.

[ "$TRAINDX_GATE" = off ] && exit 0
event=$1
state=${TRAINDX_GATE_STATE:-${XDG_STATE_HOME:-$HOME/.local/state}/traindx/gate}

open=
for mark in "$state"/open/*; do
    [ -e "$mark" ] && open=yes && break
done
[ -z "$open" ] && case $event in PreToolUse | UserPromptSubmit) ;; *) exit 0 ;; esac

input=$(cat)
if [ -z "$open" ]; then
    # What may open a session, switch the gate, or decide in a person's place.
    case $event:$input in
        UserPromptSubmit:*[Tt][Rr][Aa][Ii][Nn][Dd][Xx]* | UserPromptSubmit:*ml-debug*) ;;
        UserPromptSubmit:*[Dd]ebug*session*) ;;
        PreToolUse:*Skill*ml-debug* | PreToolUse:*ml-debug*Skill*) ;;
        PreToolUse:*traindx*approve* | PreToolUse:*traindx*reject* | PreToolUse:*traindx*revise*) ;;
        PreToolUse:*traindx.session* | PreToolUse:*traindx/gate/* | PreToolUse:*TRAINDX_GATE*) ;;
        *) exit 0 ;;
    esac
fi
case $event in
    PostToolUse*)
        # Before an approval only a loaded skill and an answered question matter afterwards.
        fix=
        for mark in "$state"/fix/*; do
            [ -e "$mark" ] && fix=yes && break
        done
        [ -z "$fix" ] && case $input in *Skill* | *AskUserQuestion*) ;; *) exit 0 ;; esac
        ;;
esac

here=$(dirname "$0")
tried=
# A known path first: a `python3` that a version manager puts in front can take longer to start than the gate itself.
for python in "$TRAINDX_PYTHON" /usr/bin/python3 /usr/local/bin/python3 /opt/homebrew/bin/python3 python3 python; do
    [ -n "$python" ] && command -v "$python" >/dev/null 2>&1 || continue
    tried="$tried $python"
    printf '%s' "$input" | "$python" -I -S "$here/gate.py" "$event"
    code=$?
    [ "$code" -eq 75 ] && continue
    [ "$code" -ne 0 ] && [ "$event" = PreToolUse ] && exit 2
    exit "$code"
done
echo "traindx gate: it needs Python 3.10 or newer and found${tried:- none}. Name one in TRAINDX_PYTHON; a person can switch" \
    "the gate off with TRAINDX_GATE=off." >&2
[ "$event" = PreToolUse ] && exit 2
exit 1
