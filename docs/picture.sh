#!/bin/sh
# Run the README's example in a temporary home. 'just picture' draws its output.
# Usage: picture.sh PH
set -eu
ph=$1
home=$(mktemp -d)
trap '"$ph" stop coder >/dev/null 2>&1 || :; rm -rf "$home"' EXIT
export PH_HOME="$home/home" XDG_RUNTIME_DIR="$home" HOME="$home" NO_COLOR=1
unset PH_AGENT PH_SOCKET PH_RUN || :

show() { printf '$ %s\n' "$1"; shift; "$@" 2>&1; echo; }

mkdir "$home/bin"
cat > "$home/bin/my-agent" <<'AGENT'
#!/bin/sh
stty -echo
echo "coder is ready."
while read -r line; do echo "> $line"; echo "on it."; done
AGENT
chmod +x "$home/bin/my-agent"
PATH="$home/bin:$PATH"
show "ph run --name coder --detach -- my-agent" "$ph" run --name coder --detach -- my-agent
id=$("$ph" send coder --subject login 'Please fix the login page first.')
printf "\$ ph send coder --subject login 'Please fix the login page first.'\n%s\n\n" "$id"
short=$(printf %.8s "$id")
show "ph why $short" "$ph" why "$short"
show "ph send coder --wait offered 'Then the tests.'" "$ph" send coder --wait offered 'Then the tests.'
show "ph ls" "$ph" ls
show "ph peek coder" "$ph" peek coder
show "ph show $short | grep -A2 stored" sh -c '"$0" show "$1" | grep -A2 stored' "$ph" "$short"
