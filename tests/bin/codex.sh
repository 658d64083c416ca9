#!/bin/sh
# A scripted Codex. What it is started with is kept in the file `started`, each line that its app server is told in
# `heard.jsonl`, a prompt on its standard input in `heard`. A prompt with WAIT keeps a command running until the turn is
# broken off or a message comes into it; one with ASK asks for a permission first; any other is answered at once.
printf '%s\n' "$@" >started
say() { printf '%s\n' "$1"; }
if [ "$1" = exec ]; then
    cat >heard
    say '{"type":"thread.started","thread_id":"s-1"}'
    say '{"type":"turn.started"}'
    say '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Answer."}}'
    say '{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":2}}'
    exit 0
fi
turns=0
note() { say '{"method":"'"$1"'","params":{"threadId":"s-1","turnId":"t-'"$turns"'",'"$2"'}}'; }
item() { note "item/$1" '"item":'"$2"; }
call() { item "$1" '{"type":"commandExecution","id":"c-'"$turns"'","command":"/bin/sh -c '"'make'"'","status":"'"$2"'"}'; }
text() { item completed '{"type":"agentMessage","id":"m","text":"'"$1"'"}'; }
used() { note thread/tokenUsage/updated '"tokenUsage":{"total":{"inputTokens":'"${turns}0"',"cachedInputTokens":0,"outputTokens":'"$turns"'},"last":{"inputTokens":10,"cachedInputTokens":0,"outputTokens":1}}'; }
over() { say '{"method":"turn/completed","params":{"threadId":"s-1","turn":{"id":"t-'"$turns"'","status":"'"$1"'","error":null}}}'; }
# The value of a text in the line that was read.
value() {
    rest=${line#*'"'"$1"'":"'}
    printf '%s' "${rest%%'"'*}"
}
while IFS= read -r line; do
    printf '%s\n' "$line" >>heard.jsonl
    case $line in
    *'"method":"initialize"'*) say '{"id":"initialize","result":{"userAgent":"scripted"}}' ;;
    *'"method":"thread/resume"'* | *'"method":"thread/start"'*)
        say '{"id":"thread","result":{"thread":{"id":"s-1"},"model":"scripted"}}'
        ;;
    *'"method":"turn/interrupt"'*) over interrupted ;;
    *'"method":"turn/steer"'*)
        say '{"id":"'"$(value id)"'","result":{"turnId":"t-'"$turns"'"}}'
        call completed completed
        item completed '{"type":"userMessage","id":"u","clientId":"'"$(value clientUserMessageId)"'","content":[{"type":"text","text":"a message"}]}'
        text "Heard in turn $turns."
        used
        over completed
        ;;
    *'"method":"turn/start"'*)
        turns=$((turns + 1))
        say '{"id":"'"$(value id)"'","result":{"turn":{"id":"t-'"$turns"'"}}}'
        say '{"method":"turn/started","params":{"threadId":"s-1","turn":{"id":"t-'"$turns"'"}}}'
        item completed '{"type":"userMessage","id":"u","clientId":"'"$(value clientUserMessageId)"'","content":[{"type":"text","text":"a prompt"}]}'
        case $line in
        *WAIT*) call started inProgress ;;
        *ASK*)
            call started inProgress
            say '{"method":"item/commandExecution/requestApproval","id":7,"params":{"threadId":"s-1","itemId":"c-'"$turns"'","command":"/bin/sh -c make"}}'
            ;;
        *)
            text "Answer $turns."
            used
            over completed
            ;;
        esac
        ;;
    *'"decision":"accept"'*)
        call completed completed
        text 'It was allowed.'
        used
        over completed
        ;;
    *'"decision":"decline"'*)
        call completed declined
        text 'It was refused.'
        used
        over completed
        ;;
    esac
done
