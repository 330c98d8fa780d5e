#!/bin/sh
# Entry point of the image: without words the worker of PROJECT, else `agent` with these words.
set -eu
umask 077

fail() {
    printf 'ERROR: %s\n' "$2" >&2
    exit "$1"
}

REPO_PATH=${REPO_PATH:-/work}
[ -d "$REPO_PATH" ] || fail 4 "REPO_PATH is not a folder: $REPO_PATH; mount the repository there"
cd -- "$REPO_PATH" 2>/dev/null || fail 4 "REPO_PATH cannot be opened: $REPO_PATH; run the container as its owner (--user)"

# A mounted repository often belongs to another user id, and git refuses it. Mounting it here is the consent.
[ -d "${HOME:-}" ] || mkdir -p "${HOME:?HOME not set}" || fail 4 "HOME cannot be made: $HOME; mount a volume that this user may write"
safe=$(git config --global --get-all safe.directory 2>/dev/null || true)
case "
$safe
" in
    *"
$REPO_PATH
"*) ;;
    *) git config --global --add safe.directory "$REPO_PATH" || fail 4 "git's settings cannot be written in HOME: $HOME" ;;
esac

# git commits for nobody without a name. Here it has one that says what worked; the variables or HOME may tell another.
if ! git config --global user.email >/dev/null 2>&1; then
    export GIT_AUTHOR_NAME="${GIT_AUTHOR_NAME:-Agent Workbench}" GIT_AUTHOR_EMAIL="${GIT_AUTHOR_EMAIL:-agent@localhost}"
fi

# The token is in the variable that the setting `forge.token_env` names, for Gitea in GITEA_TOKEN.
[ -z "${GITEA_BASE_URL:-}" ] || export AGENT_FORGE__URL="${AGENT_FORGE__URL:-$GITEA_BASE_URL}"

[ "$#" -eq 0 ] || exec agent "$@"

[ -n "${PROJECT:-}" ] || fail 2 "PROJECT not set"
set -- worker --project "$PROJECT"
case "${EXECUTION_MODE:-adhoc}" in
    adhoc) set -- "$@" --once ;;
    cron) set -- "$@" --schedule "${CRON_SCHEDULE:-*/30 * * * *}" ;;
    watch) set -- "$@" --watch ;;
    *) fail 2 "EXECUTION_MODE is $EXECUTION_MODE; expected adhoc, cron or watch" ;;
esac
[ -z "${QUEUE_PATH:-}" ] || set -- "$@" --queue "$QUEUE_PATH"
[ -z "${POLICY:-}" ] || set -- "$@" --policy "$POLICY"
case "${UNCONFINED:-no}" in
    no) ;;
    yes) set -- "$@" --unconfined ;;
    *) fail 2 "UNCONFINED is $UNCONFINED; expected yes or no" ;;
esac

# Trust without a terminal holds for one content only: the digest that `agent trust --show` prints.
[ -z "${TRUST_DIGEST:-}" ] || agent trust --yes "$TRUST_DIGEST"
exec agent "$@"
