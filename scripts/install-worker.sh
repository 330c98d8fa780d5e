#!/bin/sh
# Build the image and start a worker for one project, as a compose project of its own. docs/how-to/install-worker.md has the rest.
set -eu
umask 077

usage() {
    cat <<'END'
usage: install-worker.sh -n NAME -p PROJECT -r REPO_PATH -l LLM_URL [-s SCHEDULE] [-t TOKEN] [-h]

  -n NAME       name of the worker: small letters, digits, - and _; each name is a worker of its own
  -p PROJECT    queue that it works on: tasks/queue/PROJECT of the repository
  -r REPO_PATH  folder of the repository
  -l LLM_URL    address at which the model answers, such as http://localhost:8080
  -s SCHEDULE   when it works, in five fields of cron (default: "*/30 * * * *")
  -t TOKEN      token of the forge; -t - reads it from standard input, -t none says that there is no forge.
                Without -t it is taken from GITEA_TOKEN. Everybody on this machine sees the words of a command (`ps`).
  -h            show this help

environment: GITEA_BASE_URL (address of the forge), UNCONFINED=yes (run tests and commands without a sandbox; only with -t none)
END
}

fail() {
    printf 'ERROR: %s\n' "$1" >&2
    exit "${2:-2}"
}

# What is written into an env file stands in single quotes there.
plain() { # LABEL VALUE
    case $2 in
        *"'"* | *'
'* | *'$'* | *'"'* | *\\*) fail "$1 has a quote, a backslash, a dollar sign or a line end, which an env file cannot hold" ;;
    esac
}

name='' project='' repo='' url='' schedule='*/30 * * * *' token='' token_from=''
while getopts n:p:r:l:s:t:h option; do
    case $option in
        n) name=$OPTARG ;;
        p) project=$OPTARG ;;
        r) repo=$OPTARG ;;
        l) url=$OPTARG ;;
        s) schedule=$OPTARG ;;
        t) token=$OPTARG token_from=argument ;;
        h) usage && exit 0 ;;
        *) usage >&2 && exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ "$#" -eq 0 ] || fail "not expected: $1"

[ -n "$name" ] || fail "-n NAME is missing"
[ -n "$project" ] || fail "-p PROJECT is missing"
[ -n "$repo" ] || fail "-r REPO_PATH is missing"
[ -n "$url" ] || fail "-l LLM_URL is missing"
case $name in [!a-z0-9]* | *[!a-z0-9_-]*) fail "NAME is $name; expected small letters, digits, - and _" ;; esac
case $project in [!A-Za-z0-9]* | *[!A-Za-z0-9._-]*) fail "PROJECT is $project; expected letters, digits, '.', - and _" ;; esac
case $url in http://?* | https://?*) ;; *) fail "LLM_URL is $url; expected http://… or https://…" ;; esac
case $url in *[!A-Za-z0-9.:/_~%?=\&@\[\]-]*) fail "LLM_URL is $url; expected an address" ;; esac
case $schedule in *[!A-Za-z0-9*/,\ -]*) fail "SCHEDULE is $schedule; expected five fields of cron" ;; esac
[ "$(printf '%s\n' "$schedule" | awk '{ print NF }')" = 5 ] || fail "SCHEDULE is $schedule; expected five fields of cron"
plain GITEA_BASE_URL "${GITEA_BASE_URL:-}"

case $token_from:$token in
    argument:-) IFS= read -r token || [ -n "$token" ] || fail "no token on standard input" ;;
    argument:none) token='' ;;
    argument:*) echo "WARNING: the token was on the command line, where others may have seen it; use -t - or GITEA_TOKEN" >&2 ;;
    *)
        token=${GITEA_TOKEN:-}
        [ -n "$token" ] || fail "no token: say -t - and give it on standard input, set GITEA_TOKEN, or say -t none"
        ;;
esac
# No child is to inherit it; it reaches the worker through its file alone.
unset GITEA_TOKEN
case $token in *[!A-Za-z0-9._~+/=-]*) fail "the token has characters that no token has" ;; esac
case ${UNCONFINED:-no} in
    no) ;;
    yes) [ -z "$token" ] || fail "UNCONFINED=yes with a token: a command without a sandbox can read it; say -t none" ;;
    *) fail "UNCONFINED is $UNCONFINED; expected yes or no" ;;
esac

command -v docker >/dev/null || fail "docker was not found; install it" 4
docker compose version >/dev/null 2>&1 || fail "docker has no compose plugin; install docker-compose-plugin" 4
repo=$(CDPATH='' cd -- "$repo" 2>/dev/null && pwd -P) || fail "REPO_PATH is no folder that can be opened: $repo" 4
[ -e "$repo/.git" ] || fail "REPO_PATH is not a git repository: $repo" 4
plain REPO_PATH "$repo"
# All workers of a repository share one volume: claims, sessions, worktrees and trust are there.
volume=agent-worker-$(printf '%s' "$repo" | cksum | awk '{ print $1 }')
owner=$(stat -c %u -- "$repo" 2>/dev/null || stat -f %u "$repo")
group=$(stat -c %g -- "$repo" 2>/dev/null || stat -f %g "$repo")
[ "$owner" -ne 0 ] || fail "REPO_PATH belongs to root, as whom no worker runs; give it to a user: chown -R USER $repo" 4

# In the container `localhost` is the container.
case $url in
    *://localhost | *://localhost[:/]* | *://127.0.0.1 | *://127.0.0.1[:/]*)
        url=$(printf '%s' "$url" | sed -e 's#://localhost#://host.docker.internal#' -e 's#://127[.]0[.]0[.]1#://host.docker.internal#')
        echo "The model is asked at $url: see that its server listens on docker's network, not on 127.0.0.1 alone."
        ;;
esac

source=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
config=${XDG_CONFIG_HOME:-${HOME:?HOME not set}/.config}
case $config in /*) ;; *) config=$HOME/.config ;; esac
folder=$config/agent-workbench/workers/$name
plain "the folder of the settings" "$folder$source"
secrets=$config/agent-workbench/secrets # the sandbox of commands shows this folder empty
mkdir -p -- "$folder" "$secrets"
chmod 0700 -- "$folder" "$secrets"

write() { # FILE [MODE]: whole or not at all; the text comes on standard input
    cat >"$1.new"
    chmod "${2:-0600}" "$1.new"
    mv -f -- "$1.new" "$1"
}

write "$folder/settings.env" <<END
PROJECT='$project'
REPO_PATH='$repo'
WORKER_UID='$owner'
WORKER_GID='$group'
EXECUTION_MODE='cron'
CRON_SCHEDULE='$schedule'
LLAMA_SERVER_URL='$url'
GITEA_BASE_URL='${GITEA_BASE_URL:-}'
UNCONFINED='${UNCONFINED:-no}'
END
{ [ -z "$token" ] || printf "GITEA_TOKEN='%s'\n" "$token"; } | write "$secrets/worker-$name.env"
write "$folder/compose.override.yaml" <<END
# The worker $name: secrets come from a file of their own. Add what else it needs, such as volumes.
services:
  worker:
    env_file: ["$secrets/worker-$name.env"]
volumes:
  state:
    name: $volume
    external: true
END
sandbox="--file '$source/deploy/compose.sandbox.yaml'"
[ "${UNCONFINED:-no}" = no ] || sandbox=''
write "$folder/compose" 0700 <<END
#!/bin/sh
# \`docker compose\` for the worker $name.
exec docker compose --project-name 'agent-worker-$name' --env-file '$folder/settings.env' \\
    --file '$source/deploy/compose.yaml' $sandbox --file '$folder/compose.override.yaml' "\$@"
END

"$folder/compose" build
docker volume create "$volume" >/dev/null
# Trust is the user's: asked here if there is somebody to ask, and kept in the worker's volume.
trusted='no'
if [ -t 0 ] && [ -t 1 ]; then
    "$folder/compose" run --rm worker trust && trusted=yes
fi
"$folder/compose" up --detach worker

cat <<END

The worker $name is started. Next steps:
END
[ "$trusted" = yes ] || printf '  trust the repository   %s run --rm worker trust\n' "$folder/compose"
cat <<END
  see what it does       $folder/compose logs --follow worker
  its state              $folder/compose run --rm worker worker status --project $project
  queue a task           $folder/compose run --rm worker worker add --project $project "what to do"
  do one task now        $folder/compose run --rm --env EXECUTION_MODE=adhoc worker
  decide what waits      $folder/compose run --rm worker tui
  other times            edit CRON_SCHEDULE in $folder/settings.env, then $folder/compose up --detach worker
  end it                 $folder/compose down
END
