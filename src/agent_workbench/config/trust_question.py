"""Question for trust in a repo: what it would run or configure, the files named there, and digests for the answer."""

import errno
import hashlib
import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from agent_workbench.config.env_file import meaning_of
from agent_workbench.config.layers import Layer
from agent_workbench.config.role_chains import HOOKS, hook_entry, hook_names
from agent_workbench.config.schema import known_key, setting_keys
from agent_workbench.config.settings_loader import LoadedSettings, combine_layers, with_env_file
from agent_workbench.config.tool_servers import GROUP, flat, server_entry, server_names
from agent_workbench.core.approval_rules import rule_words
from agent_workbench.core.custom_prompts import prompt_folder
from agent_workbench.core.errors import ConfigError, TrustError
from agent_workbench.core.settings import AGENTS_FILES, DEFAULT_TOOLS, Approval, Rule, Settings
from agent_workbench.core.settings.models import USUAL_CONTEXT_TOKENS
from agent_workbench.core.skills import ENVIRONMENT_MARK, ENVIRONMENTS, is_compiled
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.system.folder_trees import NotRegularError, open_regular, read_regular

RULES = "approvals.rules"
SKILL_FILES = "skill files in "
PROMPTS = "prompts in "
# Keys that are harmless with any value. A key that is neither here nor in `BOUNDED` needs trust.
HARMLESS = {
    *("ui.theme", "ui.notify", "ui.clipboard", "retrieval.exclude", "workspace.keep", "sandbox.require"),
    *("limits.reflexion", "limits.review"),
}
HARMLESS_GROUPS = ("sampling.",)
# Groups whose keys belong together and all need trust.
WHOLE_GROUPS = ("endpoints.", "roles.", "mcp_servers.", "hooks.", "forge.", "database.")
# Harmless up to the default.
BOUNDED = {
    *("limits.max_tool_calls_per_task", "limits.max_reflexion_retries", "limits.consecutive_failure_threshold"),
    *("limits.command_seconds", "model.answer_tokens", "model.answer_seconds"),
    *(
        "retrieval.top_n",
        "retrieval.chunker.max_tokens",
        "skills.max_tokens",
        "memory.summarise_threshold",
        "memory.knowledge_tokens",
    ),
    "skills.script_seconds",
}
# Harmless up to the usual one, which needs little memory.
CONTEXT = "model.context_tokens"
MEANINGS = {
    "test_command": "runs as the tests, in a sandbox without a question",
    "lint_command": "runs as the linter, in a sandbox without a question",
    "language_servers": "look at changed files, in a sandbox without a question",
    "python": "runs the tests",
    "model.path": "is the model that is loaded",
    "model.server": "is started as the model's server",
    "model.url": "is sent your code",
    "model.api_key_env": "is the variable whose value is sent to the model's server",
    "endpoints.*.path": "is a model that may be loaded",
    "endpoints.*.server": "may be started as a model's server",
    "endpoints.*.url": "may be sent your code",
    "endpoints.*.api_key_env": "is the variable whose value is sent to that endpoint",
    "retrieval.embeddings.provider": "makes the vectors of your code",
    "retrieval.embeddings.url": "is sent your code",
    "retrieval.embeddings.model": "is the model whose vectors are asked for",
    "retrieval.embeddings.api_key_env": "is the variable whose value is sent to the server of vectors",
    "retrieval.embeddings.path": "is the embedding model that is loaded",
    "roles.planner": "are asked for plans",
    "roles.executor": "are asked for steps",
    "roles.reflexion": "are asked for reflexions",
    "roles.verifier": "check the answers of consultants",
    "roles.skills.*": "are asked for this skill",
    "cost_cap_daily": "is how many dollars may be spent in a day",
    "workspace.link": "are linked into the workspace",
    "tools_allowed": "may be used by the model",
    "sandbox.network": "opens the network to commands",
    "mcp_servers.*.command": "is started as an MCP server",
    "mcp_servers.*.args": "are its arguments",
    "mcp_servers.*.env": "is its environment",
    "mcp_servers.*.url": "is asked as an MCP server, and sent what the model passes to its tools",
    "mcp_servers.*.headers": "are sent to it",
    "mcp_servers.*.read": "may be read by it",
    "mcp_servers.*.write": "may be written by it",
    "mcp_servers.*.network": "opens the network to it",
    "mcp_servers.*.unconfined": "runs it with your rights, outside of the sandbox",
    "forge.kind": "is the kind of the forge",
    "forge.url": "is the forge that tasks come from, and that reports and branches are sent to",
    "forge.repo": "is the repository on the forge",
    "forge.label": "makes an issue a task",
    "forge.users": "may make issues tasks, and decide in comments",
    "forge.token_env": "is the variable whose value is sent to the forge",
    "forge.report": "are sent to the forge",
    "forge.poll_seconds": "is the time between two looks at the forge",
    "forge.plain_http": "sends the forge's token without TLS",
    "worker.park_for": "is how long a parked proposal waits for you",
    "worker.then": "happens to it then",
    "worker.jobs": "is how many tasks a worker does at the same time",
    "worker.pause_below_percent": "is the capacity below which workers begin nothing new",
    "worker.poll_seconds": "is the time between two looks of a worker",
    "database.url_env": "is the variable that holds the address of the database, where sessions are copied to",
    "database.remote": "is the git remote that checkpoints and branches are pushed to",
    "hooks.*.command": "runs on these events",
    "hooks.*.events": "are the events of this hook",
    "hooks.*.timeout_seconds": "is how long it may run",
    "hooks.*.network": "opens the network to it",
    "hooks.*.unconfined": "runs it with your rights, outside of the sandbox",
    "ui.keys": "changes what keys do",
    "ui.review_context": "shows no preview of the first prompt",
    "skills.agents_md": "leaves the repository's AGENTS.md files out of prompts",
    RULES: "are let through without a question",
    "memory.dir": "is where notes and sessions are written",
    "memory.plan": "is the file that holds the plan",
}

MAX_FILES = 2000
MAX_FOLDERS = 2000
"""Folders that are looked into, each as often as links lead to it: links to links can name one a billion times."""
MAX_TOTAL_BYTES = 50_000_000

MAX_FILE_BYTES = 50_000_000
_ENTRIES = ("__main__.py", "__init__.py", "index.js", "package.json")
"""Files by which a folder or a package is started."""
_WORD = re.compile(r"[^\s;|&()<>`'\"$={}]+")


class TrustQuestion(Struct, frozen=True):
    """Items to trust by name, a line for each, and the digest that the answer is bound to.

    `changes` lists new, different and removed items since the repo was last trusted; empty if it never was.
    """

    items: Mapping[str, str]
    lines: tuple[str, ...]
    changes: tuple[str, ...]
    digest: str


def trust_question(root: Path, loaded: LoadedSettings, before: Mapping[str, str] | None = None) -> TrustQuestion:
    """Return what the repo would run or configure; `before` are the items trusted last.

    The content of tests and programs is not included: the sandbox holds them, and without one they wait at their gates.
    Raises `TrustError` for skill folders that cannot be read in full.
    """
    values = {key: said.value for key, said in sorted(loaded.layers.repo.items()) if not _is_harmless(key, said.value)}
    values |= dict(named_files(root, loaded.layers.repo))
    values |= dict(loaded.env_file.trust_items())
    values |= skill_items(root, loaded)
    values |= prompt_items(root, prompt_folder(loaded.settings.memory.dir))
    texts = tuple(each for each in AGENTS_FILES if (root / each).exists())
    if texts and loaded.settings.skills.agents_md:
        values["text for the model"] = texts
    # Of the values, not of their texts: two values may look alike.
    digest = hashlib.sha256(json.dumps(values, sort_keys=True, default=to_builtins).encode()).hexdigest()
    items = {name: value_text(value) for name, value in values.items()}
    lines = tuple(_line(name, text) for name, text in items.items())
    return TrustQuestion(items, lines, _changes(before, items), digest)


def skill_items(root: Path, loaded: LoadedSettings) -> dict[str, str]:
    """Return the digest of each folder of the repo's skills, by the name of its item."""
    found = {folder: digest_folder(root, folder) for folder in _skill_folders(loaded)}
    return {f"{SKILL_FILES}{folder}": digest for folder, digest in found.items() if digest}


def prompt_items(root: Path, folder: str) -> dict[str, str]:
    """Return the digest of a folder of the repo's prompts by the name of its item, nothing if there are none."""
    digest = digest_folder(root, folder)
    return {f"{PROMPTS}{folder}": digest} if digest else {}


def _skill_folders(loaded: LoadedSettings) -> tuple[str, ...]:
    """Return the folders of skills once the repo is trusted; a `.env` that cannot be used is told of then."""
    try:
        return with_env_file(loaded).settings.skills.folders
    except ConfigError:
        return loaded.settings.skills.folders


def with_trust(root: Path, loaded: LoadedSettings) -> LoadedSettings:
    """Return the settings of a trusted repo, with its `.env`; raise `ConfigError` that names a faulty line of it.

    The repo's instructions for agents are read only if the user was asked.
    """
    asked = trust_question(root, loaded).items
    return with_env_file(loaded) if asked else replace(loaded, settings=_without_instructions(loaded))


def _without_instructions(loaded: LoadedSettings) -> Settings:
    return replace(loaded.settings, skills=replace(loaded.settings.skills, agents_md=False))


def without_untrusted(loaded: LoadedSettings) -> LoadedSettings:
    """Return the settings with only the harmless part of the repo's file, and without its skills."""
    harmless: Layer = {key: said for key, said in loaded.layers.repo.items() if _is_harmless(key, said.value)}
    part = combine_layers(replace(loaded.layers, repo=harmless), home="", partial=True)
    skills = replace(part.settings.skills, dirs=(), agents_md=False)
    return replace(part, settings=replace(part.settings, skills=skills))


def value_text(value: object) -> str:
    """Return the whole value of a setting on one line, with invisible characters escaped."""
    if isinstance(value, tuple):
        return "[" + ", ".join(value_text(each) for each in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Rule):
        value = rule_words(value)
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in str(value)) or "''"


def _is_harmless(key: str, value: object) -> bool:
    known = setting_keys()
    default = known[known_key(key, known)].default
    if key.startswith(WHOLE_GROUPS):
        return False
    if key.startswith(HARMLESS_GROUPS):
        return True
    if key == "language_servers":
        return not value  # the user may have chosen none, so the default is no less than any other list
    if key in HARMLESS or value == default:
        return True
    if key == CONTEXT and isinstance(value, int):
        return value <= USUAL_CONTEXT_TOKENS
    if key in BOUNDED and isinstance(value, int | float) and isinstance(default, int | float):
        return value <= default
    if key == "tools_allowed" and isinstance(value, tuple):
        return set(value) <= set(DEFAULT_TOOLS)
    return key.startswith("approvals.") and key != RULES and value is not Approval.AUTO


def _line(name: str, text: str) -> str:
    if name.startswith("approvals.") and name != RULES:
        return f"{name}: {text} (no question before each {name.removeprefix('approvals.')})"
    meaning = meaning_of(name) or MEANINGS.get(known_key(name, setting_keys()), "")
    return f"{name}: {text} ({meaning})" if meaning else f"{name}: {text}"


def _changes(before: Mapping[str, str] | None, now: Mapping[str, str]) -> tuple[str, ...]:
    if before is None:
        return ()
    changed = [f"{name}: {before[name]} → {now[name]}" for name in now if name in before and before[name] != now[name]]
    new = [f"{name}: {now[name]} (new)" for name in now if name not in before]
    gone = [f"{name}: {before[name]} (gone)" for name in before if name not in now]
    return tuple(changed + new + gone)


def digest_folder(root: Path, folder: str) -> str:
    """Return the number of files below `root/folder` and their digest, empty if there are none.

    Links are followed, as a reader of the skill follows them. The digest covers names, contents and the executable bit.
    Left out are compiled files and a skill's environment, whose content is accepted by itself. Raises `TrustError` for
    more than `MAX_FILES`, `MAX_FOLDERS` or `MAX_TOTAL_BYTES`.
    """
    digest = hashlib.sha256()
    count = folders = total = 0
    try:
        for path in _walk(root / folder, frozenset()):
            if path is None:
                folders += 1
                if folders > MAX_FOLDERS:
                    raise TrustError(
                        f"{folder} contains more than {MAX_FOLDERS} folders, or links to folders",
                        advice="keep only skills, or prompts, in that folder",
                    )
                continue
            count += 1
            content, size = _content(path, MAX_TOTAL_BYTES - total)
            total += size
            if count > MAX_FILES or total > MAX_TOTAL_BYTES:
                raise TrustError(
                    f"{folder} contains more than {MAX_FILES} files or {MAX_TOTAL_BYTES} bytes",
                    advice="keep only skills, or prompts, in that folder",
                )
            digest.update(f"{len(str(path))} {path} {content}\n".encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise TrustError(
            f"the file {error.filename} of {folder} cannot be read: {error.strerror}", advice="check its permissions"
        ) from error
    return f"{counted_text(count, 'file')}, sha256 {digest.hexdigest()}" if count else ""


def _walk(folder: Path, above: frozenset[tuple[int, int]]) -> Iterator[Path | None]:
    """Yield the files below a folder, and None for each folder, so that these are counted too."""
    if not folder.is_dir():
        return
    facts = folder.stat()
    here = (facts.st_dev, facts.st_ino)
    if here in above:
        return
    yield None
    # Only directly in a skill: beside the skills, and deeper in one, a folder of that name is content like any other.
    environment = _environment(folder) if len(above) == 1 else None
    for path in sorted(folder.iterdir()):
        if path == environment or is_compiled(folder.name, path.name):
            continue
        if path.is_dir():
            yield from _walk(path, above | {here})
        else:
            yield path


def _environment(skill: Path) -> Path | None:
    return next((skill / name for name in ENVIRONMENTS if (skill / name / ENVIRONMENT_MARK).is_file()), None)


def _content(path: Path, limit: int) -> tuple[str, int]:
    """Return the file's part of the digest, and the number of bytes read (at most one over `limit`)."""
    if not path.exists():
        return "broken link", 0
    try:
        with os.fdopen(open_regular(path, follow=True), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(limit + 1)
    except NotRegularError:
        return "not a regular file", 0
    return f"{mode & 0o111:o} {hashlib.sha256(data).hexdigest()}", len(data)


def named_files(root: Path, layer: Layer) -> Iterator[tuple[str, str]]:
    """Yield a name and a digest for each file of the repo that the command line of a server or a hook names.

    No gate waits before the server is started or the hook runs. Blocks.
    """
    for name in server_names(layer):
        own = server_entry(layer, name)
        words = tuple(flat([own[key].value for key in ("command", "args") if key in own]))
        yield from _digests(root, f"{GROUP}{name}", words)
    for name in hook_names(layer):
        said = hook_entry(layer, name).get("command")
        yield from _digests(root, f"{HOOKS}{name}", _shell_words(str(said.value)) if said is not None else ())


def _digests(root: Path, entry: str, words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for path in dict.fromkeys(_paths(words)):
        if digest := _file_digest(root, path):
            yield f"{entry} file {path}", digest


def _shell_words(line: str) -> tuple[str, ...]:
    """Return the words of a shell's line, those inside of quotes and substitutions too."""
    try:
        whole = shlex.split(line)
    except ValueError:  # a quote is not closed
        whole = []
    return (*whole, *_WORD.findall(line))


def _paths(words: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths that the words of a command line may name: as they are, as an option's value, as a module."""
    for before, word in zip(("", *words), words, strict=False):
        option, _, value = word.partition("=")
        named = value if option.startswith("-") and value else word
        yield named
        yield from (f"{named.rstrip('/')}/{entry}" for entry in _ENTRIES)
        glued = word.startswith("-m") and len(word) > 2
        if before == "-m" or glued:
            *packages, _ = parts = (word[2:] if glued else named).split(".")
            path = "/".join(parts)
            yield f"{path}.py"
            yield from (f"{path}/{entry}" for entry in _ENTRIES)
            yield from (f"{'/'.join(packages[: end + 1])}/__init__.py" for end in range(len(packages)))


def _file_digest(root: Path, word: str) -> str:
    """Return the digest of the file that a word of a command line names, empty if it names none inside the repo.

    A link that leads out of the repo is told with its target.
    """
    try:
        inside = Path(os.path.normpath(root / word)).is_relative_to(root)
        real = (root / word).resolve()
        out = not real.is_relative_to(root.resolve())
        data = read_regular(real, MAX_FILE_BYTES) if inside or not out else None
    except OSError as error:
        return str(error) if error.errno == errno.EFBIG else ""
    except (RuntimeError, ValueError):  # a loop of links, or no path at all
        return ""
    if data is None:
        return ""
    digest = sha256(data).hexdigest()
    return f"a link to {real}, {digest}" if out else digest
