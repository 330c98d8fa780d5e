#!/bin/sh
# Write the tag of a new image into a deployment repository: one line, one commit. Undo it with `git revert`.
#
#   roll-out.sh FILE IMAGE TAG                    change FILE
#   roll-out.sh --push URL FILE IMAGE TAG         change FILE of the repository at URL, commit and push
#
# The line is `image: IMAGE:…` or, with kustomize, `newTag: …`. IMAGE is its full name, or the end of it behind a `/`. For --push DEPLOY_KEY may hold a private SSH key, and
# DEPLOY_KNOWN_HOSTS the lines of known_hosts for its server; both are in a private folder until the script ends.
set -eu
umask 077

fail() {
    printf 'ERROR: %s\n' "$1" >&2
    exit 2
}

set_tag() { # FILE IMAGE TAG
    [ -f "$1" ] || fail "no such file: $1"
    case $2 in '' | *[!A-Za-z0-9._/:-]*) fail "not the name of an image: $2" ;; esac
    case $3 in '' | *[!A-Za-z0-9._-]*) fail "not a tag: $3" ;; esac
    changed=$(mktemp "$1.XXXXXX")
    IMAGE=$2 TAG=$3 awk '
        BEGIN { image = ENVIRON["IMAGE"]; tag = ENVIRON["TAG"] }
        /^[ \t]*(- +)?image:[ \t]/ {
            name = $0
            sub(/^[ \t]*(- +)?image:[ \t]*/, "", name)
            gsub(/["\047 \t\r]/, "", name)
            sub(/@.*$/, "", name)
            sub(/:[^:\/]*$/, "", name)
            if (name == image || substr(name, length(name) - length(image)) == "/" image) {
                match($0, /image:[ \t]*/)
                $0 = substr($0, 1, RSTART + RLENGTH - 1) name ":" tag
                count++
            }
        }
        /^[ \t]*(- +)?newTag:[ \t]/ {
            match($0, /newTag:[ \t]*/)
            $0 = substr($0, 1, RSTART + RLENGTH - 1) "\"" tag "\""
            count++
        }
        { print }
        END { if (count != 1) { printf "%d lines name the image %s, not one\n", count, image > "/dev/stderr"; exit 1 } }
    ' "$1" >"$changed" || { rm -f "$changed"; fail "$1 was not changed"; }
    cat "$changed" >"$1" # keeps the mode and the owner of the file
    rm -f "$changed"
}

push_tag() { # URL FILE IMAGE TAG
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    trap 'exit 130' INT TERM HUP
    if [ -n "${DEPLOY_KEY:-}" ]; then
        printf '%s\n' "$DEPLOY_KEY" >"$folder/key"
        printf '%s\n' "${DEPLOY_KNOWN_HOSTS:?the key needs DEPLOY_KNOWN_HOSTS}" >"$folder/known_hosts"
        GIT_SSH_COMMAND="ssh -i $folder/key -o IdentitiesOnly=yes -o UserKnownHostsFile=$folder/known_hosts"
        export GIT_SSH_COMMAND
        unset DEPLOY_KEY
    fi
    git clone --quiet --depth 1 -- "$1" "$folder/repo"
    case "/$2/" in */../* | //*) fail "not a file of the repository: $2" ;; esac
    set_tag "$folder/repo/$2" "$3" "$4"
    cd "$folder/repo"
    if git diff --quiet; then
        echo "$2 names $3:$4 already"
        return
    fi
    git -c user.name="${DEPLOY_NAME:-deploy}" -c user.email="${DEPLOY_MAIL:-deploy@localhost}" \
        commit --quiet --all --message "chore(deploy): ${3##*/} → $4"
    git push --quiet origin HEAD
    git log --max-count 1 --oneline --stat
}

case "${1:-}" in
    --push)
        [ "$#" -eq 5 ] || fail "expected: --push URL FILE IMAGE TAG"
        shift
        push_tag "$@"
        ;;
    *)
        [ "$#" -eq 3 ] || fail "expected: FILE IMAGE TAG"
        set_tag "$@"
        ;;
esac
