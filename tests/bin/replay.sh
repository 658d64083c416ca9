#!/bin/sh
# A pi that is played by the test program named in SUBDECK_REPLAY_PLAYER. What the test harness prints goes nowhere; the
# player writes to descriptor 3.
exec "$SUBDECK_REPLAY_PLAYER" --exact plays_a_recording --nocapture 3>&1 >/dev/null
