#!/bin/sh
# A small scripted agent that shows its activity in the title, like coding agents. It works on the
# first request until it is interrupted, and queues later messages. Then it asks its reviewer, and
# replies to the person.
title() { printf '\033]0;coder is %s\007' "$1"; }
say() { printf 'coder: %s\n' "$1"; }
# Parse a typed line: the message's id and its text.
take() {
    id=${1#*" id: "}
    id=${id%%[!0-9a-f]*}
    text=${1#*"] "}
}
stop() {
    interrupted=yes
    printf '\n'
    say "I stop."
    title resting
}

request=
interrupted=
trap stop INT
say ready
title resting
while :; do
    if ! IFS= read -r line; then
        # The interrupt key also ends the read; without it, the input has ended.
        [ -n "$interrupted" ] || exit 0
        interrupted=
        continue
    fi
    case $line in
        "[ph message from: reviewer id: "*)
            take "$line"
            title working
            ph mark-read "$id" >/dev/null
            ph reply "$request" "Done. The reviewer says: $text" >/dev/null
            ph archive "$request" >/dev/null
            say "done"
            title resting
            ;;
        "[URGENT ph message from: human id: "*)
            take "$line"
            title working
            say "a new plan; the reviewer should see it"
            ph send reviewer "Please review my change to the login page." >/dev/null
            ph mark-read "$id" >/dev/null
            title resting
            ;;
        "[ph message from: human id: "*)
            take "$line"
            if [ -z "$request" ]; then
                request=$id
                title working
                say "I begin"
            else
                say "noted"
            fi
            ph mark-read "$id" >/dev/null
            ;;
        *) say "I only answer mail" ;;
    esac
done
