#!/bin/sh
# An agent that asks. FAMILY is its first argument: `claude`, `acp` or `pi`. Once it has its task it prints the lines of
# the file `ask` in its folder; when it has heard as many answers as that has lines it says that it is done. All that it
# hears is kept in `heard.jsonl`. `pi` also hands the files of the folder `channel`, if there is one, to its supervisor and
# waits for the replies, which it keeps in `reply.NAME`. When it is told to break off it does.
set -u
family=$1
heard=0
say() { printf '%s\n' "$1"; }
questions() { if [ -e ask ]; then wc -l <ask; else echo 0; fi; }
put() { if [ -e ask ]; then cat ask; fi; }
begin() {
  case $family in
  claude)
    say '{"type":"system","subtype":"init","session_id":"s-1","model":"m"}'
    say '{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make"}}]}}'
    ;;
  pi) say '{"type":"agent_start"}' ;;
  esac
  put
}
done_() {
  case $family in
  claude)
    say '{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":false,"content":"x"}]}}'
    say '{"type":"assistant","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"done"}]}}'
    say '{"is_error":false,"subtype":"success","result":"done","terminal_reason":"completed","type":"result"}'
    ;;
  acp)
    say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"done"}}}}'
    say '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
    ;;
  pi)
    say '{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"done"}],"usage":{"input":1,"output":1},"stopReason":"stop"}}'
    say '{"type":"agent_end","messages":[],"willRetry":false}'
    say '{"type":"agent_settled"}'
    ;;
  esac
}
# The supervisor is asked as the real extension does it: beside its place, then renamed.
supervisor() {
  [ -d channel ] || return 0
  folder=$PI_SUBAGENT_SUPERVISOR_CHANNEL_DIR
  mkdir -p "$folder/requests" "$folder/replies"
  for file in channel/*.json; do
    name=$(basename "$file")
    say '{"type":"tool_execution_start","toolCallId":"c-'"$name"'","toolName":"contact_supervisor","args":{"reason":"need_decision"}}'
    cp "$file" "$folder/requests/.$name.tmp"
    mv "$folder/requests/.$name.tmp" "$folder/requests/$name"
  done
  for file in channel/*.json; do
    name=$(basename "$file")
    while [ ! -e "$folder/replies/$name" ] && [ ! -e giveup ]; do sleep 0.02; done
    if [ -e "$folder/replies/$name" ]; then cp "$folder/replies/$name" "reply.$name"; fi
    say '{"type":"tool_execution_end","toolCallId":"c-'"$name"'","toolName":"contact_supervisor","isError":false}'
  done
  done_
}
answered() {
  heard=$((heard + 1))
  if [ "$heard" -ge "$(questions)" ]; then done_; fi
}
while IFS= read -r line; do
  printf '%s\n' "$line" >>heard.jsonl
  case $family:$line in
  claude:*'"type":"control_response"'*) answered ;;
  claude:*'"subtype":"interrupt"'*)
    say '{"type":"control_response","response":{"subtype":"success","request_id":"subdeck-interrupt","response":{}}}'
    say '{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools","errors":["x"]}'
    ;;
  claude:*'"type":"user"'*) begin ;;
  acp:*'"method":"initialize"'*) say '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}' ;;
  acp:*'"method":"session/new"'*) say '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s-1"}}' ;;
  acp:*'"method":"session/prompt"'*) begin ;;
  acp:*'"method":"session/cancel"'*) say '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}' ;;
  acp:*'"outcome":"cancelled"'*) ;;
  acp:*'"outcome"'*) answered ;;
  pi:*'"type":"prompt"'*)
    say '{"id":"subdeck-prompt","type":"response","command":"prompt","success":true}'
    begin
    supervisor
    ;;
  pi:*'"type":"abort"'*) say '{"type":"agent_end","messages":[],"willRetry":false}' ;;
  pi:*'"type":"extension_ui_response"'*) answered ;;
  esac
done
