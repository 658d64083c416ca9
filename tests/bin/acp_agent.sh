#!/bin/sh
# A scripted agent that speaks the Agent Client Protocol. What it is told goes to the file named in ACP_HEARD. A prompt
# with WAIT keeps a tool running until the agent is told to break off; one with ASK asks for a permission first; one with
# FILE asks its client for a file; any other is answered at once.
say() { printf '%s\n' "$1"; }
update() { say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":'"$1"'}}'; }
text() { update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}'; }
tool() { update '{"sessionUpdate":"'"$1"'","toolCallId":"'"$prompt"'","title":"long work","kind":"execute","status":"'"$2"'"}'; }
over() { say '{"jsonrpc":"2.0","id":'"$prompt"',"result":{"stopReason":"'"$1"'"}}'; }
prompt=2
while read -r line; do
    printf '%s\n' "$line" >>"$ACP_HEARD"
    case $line in
    *'"method":"initialize"'*) say '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}' ;;
    *'"method":"session/new"'*) say '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s-1"}}' ;;
    *'"method":"session/cancel"'*)
        tool tool_call_update failed
        over cancelled
        ;;
    *'"method":"session/prompt"'*)
        prompt=$((prompt + 1))
        case $line in
        *WAIT*) tool tool_call in_progress ;;
        *ASK*)
            say '{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"sessionId":"s-1","toolCall":{"toolCallId":"c","title":"rm x","kind":"delete"},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}}'
            ;;
        *FILE*) say '{"jsonrpc":"2.0","id":"f","method":"fs/read_text_file","params":{"sessionId":"s-1","path":"/x"}}' ;;
        *)
            text "Answer $prompt."
            over end_turn
            ;;
        esac
        ;;
    *'"optionId":"yes"'*)
        text "It was allowed."
        over end_turn
        ;;
    *'"optionId":"no"'*)
        text "It was refused."
        over end_turn
        ;;
    *'"error"'*)
        text "There is no file."
        over end_turn
        ;;
    esac
done
