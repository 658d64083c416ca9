#!/bin/sh
# A Claude Code that is played, one way a mode; the mode is the first argument, what else it was started with is kept in
# the file `started`.
#
#   answer   answers its prompt and ends at the end of its input
#   newer    the same, and says more than anybody knows
#   half     says something and ends without an end
#   listen   runs a tool until a message comes, keeps the message in `heard`, answers it
#   long     runs a tool until it is interrupted
#   ask      asks for a permission, keeps the answer in `answer`, then answers
#   once     reads its prompt as text to the end, keeps it in `heard`, answers
set -u
mode=$1
shift
printf '%s\n' "$@" >started

init() { printf '%s\n' '{"type":"system","subtype":"init","session_id":"s-1","model":"opus"}'; }
block() { # ID BLOCK
  printf '{"type":"assistant","parent_tool_use_id":null,"message":{"id":"%s","role":"assistant","model":"opus","content":[%s]}}\n' "$1" "$2"
}
tool() { block m1 '{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make"}}'; }
brought() { # FAILED TEXT
  printf '{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":%s,"content":"%s"}]}}\n' "$1" "$2"
}
end() {
  block m2 '{"type":"text","text":"fine"}'
  printf '%s\n' '{"is_error":false,"subtype":"success","result":"fine","terminal_reason":"completed","total_cost_usd":0.25,"usage":{"input_tokens":3,"output_tokens":2},"type":"result"}'
}
if [ "$mode" = once ]; then
  cat >heard
  init
  end
  exit 0
fi
while IFS= read -r line; do
  case $line in
    *'"subtype":"interrupt"'*)
      printf '%s\n' '{"type":"control_response","response":{"subtype":"success","request_id":"subdeck-interrupt","response":{"still_queued":[]}}}'
      brought true 'stopped while running'
      printf '%s\n' '{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools","errors":["x"],"total_cost_usd":0.1}'
      ;;
    *'"type":"control_response"'*)
      printf '%s\n' "$line" >answer
      brought true 'refused'
      # The mark is there until the agent goes on.
      while [ ! -e go ]; do sleep 0.02; done
      end
      ;;
    *'"uuid":"'*)
      printf '%s\n' "$line" >heard
      uuid=${line#*'"uuid":"'}
      uuid=${uuid%%'"'*}
      printf '{"type":"command_lifecycle","command_uuid":"%s","state":"queued"}\n' "$uuid"
      brought false made
      printf '{"type":"command_lifecycle","command_uuid":"%s","state":"started"}\n' "$uuid"
      end
      printf '{"type":"command_lifecycle","command_uuid":"%s","state":"completed"}\n' "$uuid"
      ;;
    *)
      init
      case $mode in
        answer) end ;;
        half)
          block m2 '{"type":"text","text":"half of it"}'
          exit 0
          ;;
        newer)
          printf '%s\n' '{"type":"brand_new","status":"failed"}' '{"type":"system","subtype":"\u001b[2Jnewer"}' '{"type":"brand_new"}'
          end
          ;;
        *) tool ;;
      esac
      if [ "$mode" = ask ]; then
        printf '%s\n' '{"type":"control_request","request_id":"q-1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"make"},"tool_use_id":"t1"}}'
      fi
      ;;
  esac
done
