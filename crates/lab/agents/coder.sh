#!/bin/sh
# A small scripted agent: says in its title what it does, as coding agents do. It works on the
# first wish until it is interrupted, takes note of what comes meanwhile, then asks its reviewer
# and tells the person.
title() { printf '\033]0;coder is %s\007' "$1"; }
say() { printf 'coder: %s\n' "$1"; }
# What stands in a line that was typed: the message's id, and its text.
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

wish=
interrupted=
trap stop INT
say ready
title resting
while :; do
    if ! IFS= read -r line; then
        # Not its end, but the key that interrupts.
        [ -n "$interrupted" ] || exit 0
        interrupted=
        continue
    fi
    case $line in
        "[ph message from: reviewer id: "*)
            take "$line"
            title working
            ph mark-read "$id" >/dev/null
            ph reply "$wish" "Done. The reviewer says: $text" >/dev/null
            ph archive "$wish" >/dev/null
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
            if [ -z "$wish" ]; then
                wish=$id
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
