#!/bin/sh
# A child that misbehaves, one way a mode. It speaks pi's records; it reads standard input only where the mode says so.
#
#   ok              says one thing and ends well
#   no-newline      the same, without a line feed at the end
#   crlf            the same, with carriage returns
#   bytes           the same, among bytes that are no text
#   escapes         the same, among terminal commands
#   long-line       the same, after a record of 20 MiB
#   flood N         N lines of text, then the same
#   stderr N        N lines on standard error, then the same
#   cut             ends with exit code 0 in the middle of a record
#   silent          says nothing and waits
#   deaf            waits and ignores SIGINT and SIGTERM
#   linger          ends well but does not exit
#   deaf-linger     the same, and ignores SIGTERM
#   grandchild      ends well and leaves a process behind that holds the output open
#   escape          leaves a process behind in a session of its own (needs setsid)
#   fail N          exits with code N after a line on standard error
#   kill SIGNAL     kills itself
#   rpc             waits for one prompt on standard input, answers it, ends at the end of the input
#   listen          waits for a message after its prompt, keeps it in the file `heard`, answers, ends at the end of the input
set -u

ok() {
  printf '%s\n' '{"type":"agent_start"}' '{"type":"turn_start"}'
  last
}

last() {
  printf '%s\n' \
    '{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"fine"}],"model":"m","usage":{"input":3,"output":1},"stopReason":"stop"}}' \
    '{"type":"turn_end"}' '{"type":"agent_end","messages":[],"willRetry":false}' '{"type":"agent_settled"}'
}

wait_long() {
  # In pieces, so that a trap runs soon.
  n=0
  while [ $n -lt 3000 ]; do sleep 0.1; n=$((n + 1)); done
}

mode=${1:-ok}
case $mode in
  ok) ok ;;
  no-newline) printf '%s' "$(ok)" ;;
  crlf) ok | sed 's/$/\r/' ;;
  bytes) printf '\377\376 \000 \303\n'; ok; printf '\360\237\n' ;;
  escapes) printf '\033]52;c;aGVsbG8=\007\033[2J\033[?1049h\033]0;title\007\n'; ok ;;
  long-line)
    printf '{"type":"image","data":"'
    head -c 20971520 /dev/zero | tr '\0' x
    printf '"}\n'
    ok
    ;;
  flood) yes 'a line of text that goes on for a little while' | head -n "${2:-100000}"; ok ;;
  stderr) yes 'a warning' | head -n "${2:-1000}" >&2; ok ;;
  cut) ok | head -c 120 ;;
  silent) wait_long ;;
  deaf) trap '' INT TERM; printf '%s\n' '{"type":"agent_start"}'; wait_long ;;
  linger) ok; wait_long ;;
  deaf-linger) trap '' TERM; ok; wait_long ;;
  grandchild) ok; sleep 300 & ;;
  escape) ok; setsid sleep 300 </dev/null >/dev/null 2>&1 & ;;
  fail) echo 'something is wrong' >&2; exit "${2:-1}" ;;
  kill) printf '%s\n' '{"type":"agent_start"}'; kill -"${2:-KILL}" $$ ;;
  rpc)
    while IFS= read -r line; do
      case $line in
        *'"type":"prompt"'*)
          printf '%s\n' '{"id":"subdeck-prompt","type":"response","command":"prompt","success":true}'
          ok
          ;;
      esac
    done
    ;;
  listen)
    while IFS= read -r line; do
      case $line in
        *'"type":"steer"'*)
          printf '%s\n' "$line" >heard
          id=${line#*'"id":"'}
          said=${line#*'"message":'}
          said=${said%'}'}
          printf '{"id":"%s","type":"response","command":"steer","success":true}\n' "${id%%'"'*}"
          printf '{"type":"message_end","message":{"role":"user","content":%s}}\n' "$said"
          ok
          ;;
        *'"type":"prompt"'*)
          printf '%s\n' '{"id":"subdeck-prompt","type":"response","command":"prompt","success":true}' '{"type":"agent_start"}'
          ;;
      esac
    done
    ;;
  # Begins with the next message of its queue when it is broken off, and works on it until its input ends.
  queued)
    while IFS= read -r line; do
      case $line in
        *'"type":"prompt"'*)
          printf '%s\n' '{"id":"subdeck-prompt","type":"response","command":"prompt","success":true}' '{"type":"agent_start"}'
          ;;
        *'"type":"follow_up"'*)
          id=${line#*'"id":"'}
          printf '{"id":"%s","type":"response","command":"follow_up","success":true}\n' "${id%%'"'*}"
          ;;
        *'"type":"abort"'*)
          printf '%s\n' '{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"error","errorMessage":"This operation was aborted"}}' \
            '{"type":"agent_end","messages":[],"willRetry":false}' '{"type":"agent_start"}'
          ;;
      esac
    done
    ;;
  *) echo "no mode $mode" >&2; exit 64 ;;
esac
