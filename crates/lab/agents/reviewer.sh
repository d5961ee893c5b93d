#!/bin/sh
# A small scripted agent: reads its terminal line by line, as a person would type, and answers
# every message in its thread. A stand-in for a coding agent, with nothing to install.
echo "reviewer: ready"
while IFS= read -r line; do
    case $line in
        "[ph message from: "*" id: "*)
            id=${line#*" id: "}
            id=${id%%[!0-9a-f]*}
            echo "reviewer: looking at $id"
            ph reply "$id" "Looks right to me; one nit: name the timeout." >/dev/null &&
                ph mark-read "$id" >/dev/null && echo "reviewer: answered $id"
            ;;
        *) echo "reviewer: I only answer mail" ;;
    esac
done
