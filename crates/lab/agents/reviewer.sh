#!/bin/sh
# A small scripted agent that reads its terminal line by line. Before it reviews the coder's work,
# it asks for permission to run a command.
title() { printf '\033]0;reviewer is %s\007' "$1"; }
say() { printf 'reviewer: %s\n' "$1"; }
# Parse a typed line: the message's id.
take() {
    id=${1#*" id: "}
    id=${id%%[!0-9a-f]*}
}

say ready
title resting
while IFS= read -r line; do
    case $line in
        "[ph message from: coder id: "*)
            take "$line"
            title working
            printf 'reviewer: May I run the tests?\n  1. Yes\n  2. No\n\n> '
            IFS= read -r answer
            case $answer in
                1) verdict="All tests pass; one nit: name the timeout." ;;
                *) verdict="It looks right, but I was not allowed to run the tests." ;;
            esac
            say "$verdict"
            ph reply "$id" "$verdict" >/dev/null && ph mark-read "$id" >/dev/null
            title resting
            ;;
        "[ph message from: human id: "*)
            take "$line"
            say "noted"
            ph mark-read "$id" >/dev/null
            ;;
        *) say "I only answer mail" ;;
    esac
done
