#!/bin/sh
# A small scripted agent: reads its terminal line by line, as a person would type. Before it
# reviews what the coder has done, it asks for a permission.
title() { printf '\033]0;reviewer is %s\007' "$1"; }
say() { printf 'reviewer: %s\n' "$1"; }
# The id in a line that was typed.
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
            printf 'reviewer: May I run the tests? [y/n] '
            IFS= read -r answer
            case $answer in
                y) verdict="All tests pass; one nit: name the timeout." ;;
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
