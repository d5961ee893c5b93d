#!/bin/sh
# A small scripted agent: passes the person's wishes on to its reviewer, and the reviewer's
# verdict back to the person.
echo "coder: ready"
wish=
while IFS= read -r line; do
    case $line in
        "[ph message from: human id: "*)
            wish=${line#*" id: "}
            wish=${wish%%[!0-9a-f]*}
            echo "coder: on it"
            ph send reviewer "Please review my change: ${line#*] }" >/dev/null
            ph mark-read "$wish" >/dev/null
            ;;
        "[ph message from: reviewer id: "*)
            id=${line#*" id: "}
            id=${id%%[!0-9a-f]*}
            ph reply "$wish" "Done. The reviewer says: ${line#*] }" >/dev/null
            ph mark-read "$id" >/dev/null
            echo "coder: done"
            ;;
        *) echo "coder: I only answer mail" ;;
    esac
done
