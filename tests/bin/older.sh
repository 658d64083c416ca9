#!/bin/sh
# An agent that is older than its steerable transport: `older.sh HOW RECORDING ARGUMENT...`. What it was started with is kept in
# `started`, one start a line. Started with one prompt it keeps that in `prompt` and plays the recording.
#
#   says TEXT  says that about the words of the steerable transport, on its standard error, and ends
#   refuses    answers the first request with a version that nobody speaks
set -u
how=$1
recording=$2
shift 2
printf '%s\n' "$*" >>started
case " $* " in
  *' --acp '* | *' acp '* | *' app-server '* | *' --input-format '*)
    if [ "$how" = refuses ]; then
      IFS= read -r line
      printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":9}}'
      # Until nobody talks any more.
      while IFS= read -r line; do printf '%s\n' "$line" >>talked; done
      exit 0
    fi
    printf '%s\n' "$how" >&2
    exit 1
    ;;
esac
cat >prompt
cat "$recording"
