"""Checks of setting values beyond their types."""

import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from agent_workbench.core.approval_rules import rule_problem
from agent_workbench.core.checks.language_servers import SERVER_NAMES
from agent_workbench.core.settings import ALL_TOOLS, TOOL_ALIASES, Approval, Permission, Rule, tool_name
from agent_workbench.core.settings.worker import MOST_JOBS
from agent_workbench.core.text.amounts import did_you_mean, quoted, time_seconds

ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
FORGE_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}/[A-Za-z0-9_.-]{1,100}(?<![/.]\.)(?<!\.git)", re.ASCII)
WORKER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
WORKER_NAME_FORM = "a letter or digit, then at most 63 letters, digits, '.', '_' or '-'"
FORGE_USER = re.compile(r"[A-Za-z0-9_.-]{1,100}", re.ASCII)
TRANSPORT_HEADERS = {"host", "content-length", "content-type", "transfer-encoding", "connection"}
MAX_HOOK_SECONDS = 600.0
KEY_ADVICE = "name a variable in api_key_env instead"


def value_problem(key: str, value: object) -> str:
    """Return the problem of a value of the right type as a sentence, empty if it is valid.

    `key` is one of `schema.setting_keys()`.
    """
    rule = _RULES.get(key)
    return rule(value) if rule is not None else ""


def removed_value_advice(key: str, text: str) -> str:
    """Return advice for a value that an earlier version accepted, empty for all others."""
    return _REPLACEMENTS.get((key, text), "")


def canonical_value(key: str, value: object) -> object:
    """Return a value without aliases and, in a list of tools, with each name once."""
    if key == "tools_allowed" and isinstance(value, tuple):
        return tuple(dict.fromkeys(map(tool_name, value)))
    return value


def _servers_problem(value: object) -> str:
    unknown = next((name for name in value if name not in SERVER_NAMES), "") if isinstance(value, tuple) else ""
    return f"expected language servers of {', '.join(SERVER_NAMES)}, found {quoted(unknown)}" if unknown else ""


def _positive_problem(value: object) -> str:
    return "" if isinstance(value, int | float) and value > 0 else f"expected more than 0, found {value}"


def _time_problem(value: object) -> str:
    if not value or time_seconds(str(value)) is not None:
        return ""
    return f"expected a time such as 30min, 12h or 3d, found {quoted(str(value))}"


def _share_problem(value: object) -> str:
    return "" if isinstance(value, int | float) and 0 <= value <= 1 else f"expected a number from 0 to 1, found {value}"


def _seed_problem(value: object) -> str:
    return "" if isinstance(value, int) and value < 2**31 else f"expected a seed below {2**31}, found {value}"


def _chain_problem(value: object) -> str:
    names = value if isinstance(value, tuple) else ()
    if not names:
        return "expected the names of endpoints, found an empty list"
    twice = next((name for name in names if names.count(name) > 1), "")
    return f"{twice!r} stands twice in the chain" if twice else ""


def _url_problem(value: object) -> str:
    text = str(value)
    if not text:
        return ""
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 - reading it is what checks it
    except ValueError as error:
        return f"expected an address such as http://127.0.0.1:8080: {error}"
    if parts.password or parts.username:
        return f"expected an address without user and password; {KEY_ADVICE}"
    if parts.query or parts.fragment:
        return f"expected an address without '?' and '#'; if that is a key: {KEY_ADVICE}"
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return f"expected an address such as http://127.0.0.1:8080, found {text!r}"
    return ""


def _server_url_problem(value: object) -> str:
    problem = _url_problem(value)
    return problem.replace(KEY_ADVICE, "put ${NAME} of a variable into a header instead")


def _server_environment_problem(value: object) -> str:
    pairs = value if isinstance(value, tuple) else ()
    wrong = next((name for name, _ in pairs if not ENVIRONMENT_NAME.fullmatch(name)), None)
    if wrong is not None:
        return f"expected the name of an environment variable (letters, digits, underscores), found {quoted(wrong)}"
    return _literal_secret_problem(pairs)


def _server_headers_problem(value: object) -> str:
    pairs = value if isinstance(value, tuple) else ()
    for name, text in pairs:
        if not HEADER_NAME.fullmatch(name) or name.lower() in TRANSPORT_HEADERS:
            return f"expected the name of a header, found {quoted(name)}"
        if not text.isascii() or not text.isprintable():
            return f"expected a header of printable ASCII characters in {quoted(name)}, found others"
    return _literal_secret_problem(pairs)


def _literal_secret_problem(pairs: tuple[tuple[str, str], ...]) -> str:
    """Return the problem of a secret that is written out; its value is not shown."""
    from agent_workbench.core.text.secrets import is_ordinary, looks_secret  # 16 ms, which few settings need

    for name, text in pairs:
        secret = looks_secret(name) or name.lower() == "authorization"
        if secret and text and "${" not in text and not is_ordinary(text):
            return f"{quoted(name)} has its value in the file: expected ${{NAME}}, a variable of your environment"
    return ""


def _forge_url_problem(value: object) -> str:
    return _url_problem(value).replace(KEY_ADVICE, "name a variable in forge.token_env instead")


def _forge_repo_problem(value: object) -> str:
    text = str(value)
    return "" if not text or FORGE_REPO.fullmatch(text) else f"expected owner/name, found {quoted(text)}"


def _poll_problem(value: object) -> str:
    return "" if isinstance(value, int | float) and value >= 5 else f"expected 5 or more seconds, found {value}"


def _jobs_problem(value: object) -> str:
    fits = isinstance(value, int) and 1 <= value <= MOST_JOBS
    return "" if fits else f"expected 1 to {MOST_JOBS} tasks at the same time, found {value}"


def _percent_problem(value: object) -> str:
    return "" if isinstance(value, int | float) and 0 <= value <= 100 else f"expected 0 to 100, found {value}"


def _worker_poll_problem(value: object) -> str:
    return "" if isinstance(value, int | float) and value >= 1 else f"expected 1 or more seconds, found {value}"


def _worker_name_problem(value: object) -> str:
    text = str(value)
    return "" if not text or WORKER_NAME.fullmatch(text) else f"expected {WORKER_NAME_FORM}, found {quoted(text)}"


def _tags_problem(value: object) -> str:
    tags = value if isinstance(value, tuple) else ()
    wrong = next((tag for tag in tags if not WORKER_NAME.fullmatch(tag)), None)
    return f"expected {WORKER_NAME_FORM}, found {quoted(wrong)}" if wrong is not None else ""


def _remote_problem(value: object) -> str:
    text = str(value)
    return "" if WORKER_NAME.fullmatch(text) else f"expected the name of a git remote, found {quoted(text)}"


def _own_file_problem(value: object) -> str:
    text = str(value)
    fits = not text or PurePosixPath(text).is_absolute() or text.startswith("~/")
    return "" if fits else f"expected an absolute path, or one that begins with ~/, found {quoted(text)}"


def _filled_problem(value: object) -> str:
    return "" if str(value).strip() else "expected a text, found nothing"


def _users_problem(value: object) -> str:
    names = value if isinstance(value, tuple) else ()
    wrong = next((name for name in names if not FORGE_USER.fullmatch(name)), None)
    return f"expected the login name of a user, found {quoted(wrong)}" if wrong is not None else ""


def _grants_problem(value: object) -> str:
    paths = value if isinstance(value, tuple) else ()
    return "" if all(each.strip() for each in paths) else "expected paths, found an empty one"


def _hook_seconds_problem(value: object) -> str:
    fits = isinstance(value, int | float) and 0 < value <= MAX_HOOK_SECONDS
    return "" if fits else f"expected more than 0 and at most {MAX_HOOK_SECONDS:g}, found {value}"


def _variable_problem(value: object) -> str:
    if not value or ENVIRONMENT_NAME.fullmatch(str(value)):
        return ""
    # The value is not shown: it may be the key itself.
    return "expected the name of an environment variable (letters, digits, underscores), found something else"


def _paths_problem(value: object) -> str:
    paths = value if isinstance(value, tuple) else ()
    return next((found for path in paths if (found := _path_problem(path))), "")


def _path_problem(value: object) -> str:
    path = PurePosixPath(str(value))
    if path.is_absolute() or not path.parts or ".." in path.parts or any(each.lower() == ".git" for each in path.parts):
        return f"expected a path inside the repo (relative, without '..' and '.git'), found {str(value)!r}"
    return ""


def _tools_problem(value: object) -> str:
    names = value if isinstance(value, tuple) else ()
    wrong = next((name for name in names if tool_name(name) not in ALL_TOOLS), "")
    known = (*ALL_TOOLS, *TOOL_ALIASES)
    return (
        f"unknown tool {quoted(wrong)}{did_you_mean(wrong, known)} (tools are {', '.join(ALL_TOOLS)})" if wrong else ""
    )


def _approval_problem(value: object) -> str:
    rules = value if isinstance(value, tuple) else ()
    return next((fault for rule in rules if isinstance(rule, Rule) and (fault := rule_problem(rule))), "")


def _once_problem(value: object) -> str:
    return "only checks can be asked about once; say ask, auto or deny" if value is Approval.ONCE else ""


_EMBEDDINGS = "retrieval.embeddings"
_ENDPOINT_ADVICE = (
    f"set {_EMBEDDINGS}.provider to server, and {_EMBEDDINGS}.url to an embeddings endpoint "
    f"or {_EMBEDDINGS}.path to an embedding model in a GGUF file; or set the provider to none"
)
_REPLACEMENTS = {(f"{_EMBEDDINGS}.provider", name): _ENDPOINT_ADVICE for name in ("builtin", "onnx")}
_SAMPLED = ("sampling", "sampling.planner", "sampling.executor", "sampling.reflexion")
_POSITIVE = (
    *("model.context_tokens", "model.answer_seconds", "model.answer_tokens", "limits.max_tool_calls_per_task"),
    *("limits.consecutive_failure_threshold", "limits.command_seconds", "skills.script_seconds"),
    "infrastructure.run_seconds",
    *(f"{group}.thinking_tokens" for group in _SAMPLED),
    *("retrieval.chunker.max_tokens", "endpoints.*.context_tokens", "model.threads", "endpoints.*.threads"),
)
_ROLES = ("planner", "executor", "reflexion", "verifier", "skills.*")
_RULES: Mapping[str, Callable[[object], str]] = {
    "model.url": _url_problem,
    "model.api_key_env": _variable_problem,
    "endpoints.*.url": _url_problem,
    "endpoints.*.api_key_env": _variable_problem,
    "retrieval.embeddings.url": _url_problem,
    "retrieval.embeddings.api_key_env": _variable_problem,
    **dict.fromkeys((f"roles.{role}" for role in _ROLES), _chain_problem),
    **dict.fromkeys((f"{group}.{name}" for group in _SAMPLED for name in ("top_p", "min_p")), _share_problem),
    **dict.fromkeys((f"{group}.seed" for group in _SAMPLED), _seed_problem),
    "tools_allowed": _tools_problem,
    "language_servers": _servers_problem,
    "approvals.rules": _approval_problem,
    **dict.fromkeys((f"approvals.{kind}" for kind in Permission if kind is not Permission.CHECK), _once_problem),
    "memory.dir": _path_problem,
    "memory.plan": _path_problem,
    "workspace.link": _paths_problem,
    "skills.dirs": _paths_problem,
    **dict.fromkeys((f"infrastructure.{each}_password_env" for each in ("vault", "become")), _variable_problem),
    "worker.park_for": _time_problem,
    "worker.jobs": _jobs_problem,
    "worker.name": _worker_name_problem,
    "worker.tags": _tags_problem,
    "worker.pause_below_percent": _percent_problem,
    "worker.poll_seconds": _worker_poll_problem,
    "database.url_env": _variable_problem,
    "database.remote": _remote_problem,
    "database.signing_key": _own_file_problem,
    "database.allowed_signers": _own_file_problem,
    "mcp_servers.*.url": _server_url_problem,
    "mcp_servers.*.env": _server_environment_problem,
    "mcp_servers.*.headers": _server_headers_problem,
    "mcp_servers.*.read": _grants_problem,
    "mcp_servers.*.write": _grants_problem,
    "forge.url": _forge_url_problem,
    "forge.repo": _forge_repo_problem,
    "forge.label": _filled_problem,
    "forge.users": _users_problem,
    "forge.token_env": _variable_problem,
    "forge.poll_seconds": _poll_problem,
    "hooks.*.timeout_seconds": _hook_seconds_problem,
    **dict.fromkeys(_POSITIVE, _positive_problem),
}
