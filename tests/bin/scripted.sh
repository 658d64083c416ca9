#!/bin/sh
# A pi that plays a script: the file in AGENT_SCRIPTS that is named after its step, `0`, or `0.2` for the second start
# of that step where there is one. What it was started with is kept beside it as `started.0.1`, `started.0.2` and so on,
# and what it was asked over rpc as `prompt.0.1`.
#
#   {...}                   prints the record as it stands
#   turn IN OUT COST        an answer that goes on, with its usage
#   say TEXT                the last answer, and everything that follows a last answer; `say_at IN OUT COST TEXT` with usage
#   open ID TOOL [ARGS]     a tool call begins; ARGS is JSON; `-` for no id
#   close ID TOOL           it ends; `-` for no id, for no tool
#   broke ID TOOL TEXT      it ends with an error that says so
#   result ID TOOL TEXT     what it brought; `failure` for one that failed
#   out TEXT, err TEXT      a line that is no record, on standard output or standard error
#   wait MS                 waits
#   until FILE              waits until the file is in AGENT_SCRIPTS
#   touch FILE              makes one there
#   deaf                    ignores SIGINT and SIGTERM from here on
#   hear                    rpc: waits for a message to the running agent, keeps it in `heard.0`, acknowledges it
#   echo                    repeats that message as pi does
#   env NAME                keeps the value of a variable in `env.0`
#   leave                   leaves a process behind that holds the output open
#   exit N, kill SIGNAL     ends at once
#   hang                    waits for ever
# Texts are put into JSON as they stand. With rpc the prompt is read and acknowledged first.
set -u
cd "$AGENT_SCRIPTS" || exit 66
me=$PI_SUBAGENT_CHILD_INDEX
n=1
while [ -e "started.$me.$n" ]; do n=$((n + 1)); done
printf '%s\n' "$@" >"started.$me.$n"
script=$me
[ -e "$me.$n" ] && script=$me.$n

quoted() { if [ "$1" = - ]; then printf null; else printf '"%s"' "$1"; fi; }
usage() { printf '"usage":{"input":%s,"output":%s,"cacheRead":0,"cacheWrite":0,"cost":{"total":%s}}' "$1" "$2" "$3"; }
last() {
  printf '{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"%s"}],%s,"stopReason":"stop"}}\n' "$2" "$1"
  printf '%s\n' '{"type":"turn_end"}' '{"type":"agent_end","messages":[],"willRetry":false}' '{"type":"agent_settled"}'
}
result() { # ID TOOL FAILED TEXT
  printf '{"type":"message_end","message":{"role":"toolResult","toolCallId":%s,"toolName":"%s","content":[{"type":"text","text":"%s"}],"isError":%s}}\n' \
    "$(quoted "$1")" "$2" "$4" "$3"
}
acknowledge() { # COMMAND LINE
  id=${2#*'"id":"'}
  printf '{"id":"%s","type":"response","command":"%s","success":true}\n' "${id%%'"'*}" "$1"
}
await() { # COMMAND: reads until it comes; its line is in $line
  while IFS= read -r line; do
    case $line in *"\"type\":\"$1\""*) return 0 ;; esac
  done
  exit 0
}

case "$*" in *"--mode rpc"*) await prompt; printf '%s\n' "$line" >"prompt.$me.$n"; acknowledge prompt "$line" ;; esac
exec 3<"$script"
while IFS= read -r step <&3; do
  word=${step%% *}
  rest=
  [ "$word" = "$step" ] || rest=${step#* }
  set -f
  # shellcheck disable=SC2086
  case $word in
    '' | '#'*) ;;
    '{'*) printf '%s\n' "$step" ;;
    turn)
      set -- $rest
      printf '{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"on it"},{"type":"toolCall","id":"t","name":"x","arguments":{}}],%s,"stopReason":"toolUse"}}\n' \
        "$(usage "$1" "$2" "$3")"
      ;;
    say) last "$(usage 1 1 0)" "$rest" ;;
    say_at)
      set -- $rest
      numbers=$(usage "$1" "$2" "$3")
      shift 3
      last "$numbers" "$*"
      ;;
    open)
      set -- $rest
      id=$1 tool=$2
      shift 2
      printf '{"type":"tool_execution_start","toolCallId":%s,"toolName":"%s","args":%s}\n' "$(quoted "$id")" "$tool" "${*:-{\}}"
      ;;
    close)
      set -- $rest
      printf '{"type":"tool_execution_end","toolCallId":%s,"toolName":%s,"isError":false}\n' "$(quoted "$1")" "$(quoted "$2")"
      ;;
    broke)
      set -- $rest
      id=$1 tool=$2
      shift 2
      printf '{"type":"tool_execution_end","toolCallId":%s,"toolName":%s,"isError":true,"result":{"content":[{"type":"text","text":"%s"}]}}\n' \
        "$(quoted "$id")" "$(quoted "$tool")" "$*"
      ;;
    result | failure)
      set -- $rest
      id=$1 tool=$2
      shift 2
      if [ "$word" = failure ]; then failed=true; else failed=false; fi
      result "$id" "$tool" "$failed" "$*"
      ;;
    out) printf '%s\n' "$rest" ;;
    err) printf '%s\n' "$rest" >&2 ;;
    wait) sleep "$(printf '%d.%03d' $((rest / 1000)) $((rest % 1000)))" ;;
    until) while [ ! -e "$rest" ]; do sleep 0.02; done ;;
    touch) : >"$rest" ;;
    env) eval "printf '%s\n' \"\${$rest-unset}\"" >>"env.$me" ;;
    leave) sleep 300 3<&- & ;;
    deaf) trap '' INT TERM ;;
    hear)
      await steer
      printf '%s\n' "$line" >>"heard.$me"
      acknowledge steer "$line"
      heard=${line#*'"message":'}
      heard=${heard%'}'}
      ;;
    echo) printf '{"type":"message_end","message":{"role":"user","content":[{"type":"text","text":%s}]}}\n' "$heard" ;;
    exit) exit "$rest" ;;
    kill) kill "-$rest" $$ ;;
    hang) while :; do sleep 1; done ;;
    *) echo "scripted.sh: no word $word" >&2; exit 64 ;;
  esac
  set +f
done
