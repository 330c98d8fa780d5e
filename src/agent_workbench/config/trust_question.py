"""What a repo's settings and skills would have us run or obey, put as a question that a digest answers for later."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from agent_workbench.config.layers import Layer
from agent_workbench.config.schema import key_of, leaves
from agent_workbench.config.settings_loader import LoadedSettings, combine
from agent_workbench.config.skill_digest import digest_folder
from agent_workbench.core.rules.rule_text import rule_words
from agent_workbench.core.settings import DEFAULT_TOOLS, Approval, Rule, Settings

RULES = "approvals.rules"
# What can do no harm whatever it says; every key that is neither here nor bounded below has to be trusted.
HARMLESS = {"ui.theme", "ui.notify", "ui.clipboard", "retrieval.exclude", "workspace.keep", "sandbox.require"}
HARMLESS_GROUPS = ("sampling.",)
# Parts of one thing: none of it is harmless without the rest.
WHOLE_GROUPS = ("endpoints.", "roles.")
# Harmless as long as it asks for no more than the default.
BOUNDED = {
    *("limits.max_tool_calls_per_task", "limits.max_reflexion_retries", "limits.consecutive_failure_threshold"),
    *("limits.command_seconds", "model.context_tokens", "model.answer_tokens", "model.answer_seconds"),
    *("retrieval.top_n", "retrieval.chunker.max_tokens", "skills.max_tokens", "memory.summarise_threshold"),
}
MEANINGS = {
    "test_command": "runs as the tests",
    "lint_command": "runs as the linter",
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
    "roles.skills.*": "are asked for this skill",
    "cost_cap_daily": "is how many dollars may be spent in a day",
    "workspace.link": "are linked into the workspace",
    "tools_allowed": "may be used by the model",
    "sandbox.network": "opens the network to commands",
    "ui.keys": "changes what keys do",
    RULES: "are let through without a question",
    "memory.dir": "is where notes and sessions are written",
    "memory.plan": "is the file that holds the plan",
}


class TrustQuestion(Struct, frozen=True):
    """What has to be trusted: `items` by name, a line each for the user, and the digest that the answer is bound to.

    `changes` says what is new, different or gone since the repo was last trusted; empty when it never was.
    """

    items: Mapping[str, str]
    lines: tuple[str, ...]
    changes: tuple[str, ...]
    digest: str


def trust_question(root: Path, loaded: LoadedSettings, before: Mapping[str, str] | None = None) -> TrustQuestion:
    """Return what the repo would have run or obeyed; `before` are the items that were trusted last.

    What tests and programs of the repo themselves contain is not in it: those wait at their gates. Raises `TrustError`
    for skill folders that cannot be read whole.
    """
    values = {key: said.value for key, said in sorted(loaded.file.items()) if not _is_harmless(key, said.value)}
    for folder in loaded.settings.skills.dirs:
        if found := digest_folder(root, folder):
            values[f"skill files in {folder}"] = found
    # Over the values themselves: two that are spelled alike for the eye must not pass for each other.
    digest = hashlib.sha256(json.dumps(values, sort_keys=True, default=to_builtins).encode()).hexdigest()
    items = {name: spell(value) for name, value in values.items()}
    lines = tuple(_line(name, text) for name, text in items.items())
    return TrustQuestion(items, lines, _changes(before, items), digest)


def untrusted_settings(loaded: LoadedSettings) -> Settings:
    """Return the settings with only what is harmless of the repo's own, and no skills of the repo."""
    harmless: Layer = {key: said for key, said in loaded.file.items() if _is_harmless(key, said.value)}
    settings = combine(harmless, loaded.others, home="", partial=True).settings
    return replace(settings, skills=replace(settings.skills, dirs=()))


def spell(value: object) -> str:
    """Return a setting's value in full, on one line, with what cannot be seen escaped."""
    if isinstance(value, tuple):
        return "[" + ", ".join(spell(each) for each in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Rule):
        value = rule_words(value)
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in str(value)) or "''"


def _is_harmless(key: str, value: object) -> bool:
    known = leaves()
    default = known[key_of(key, known)].default
    if key.startswith(WHOLE_GROUPS):
        return False
    if key.startswith(HARMLESS_GROUPS):
        return True
    if key in HARMLESS or value == default:
        return True
    if key in BOUNDED and isinstance(value, int | float) and isinstance(default, int | float):
        return value <= default
    if key == "tools_allowed" and isinstance(value, tuple):
        return set(value) <= set(DEFAULT_TOOLS)
    return key.startswith("approvals.") and key != RULES and value is not Approval.AUTO


def _line(name: str, text: str) -> str:
    if name.startswith("approvals.") and name != RULES:
        return f"{name}: {text} (no question before each {name.removeprefix('approvals.')})"
    meaning = MEANINGS.get(key_of(name, leaves()), "")
    return f"{name}: {text} ({meaning})" if meaning else f"{name}: {text}"


def _changes(before: Mapping[str, str] | None, now: Mapping[str, str]) -> tuple[str, ...]:
    if before is None:
        return ()
    changed = [f"{name}: {before[name]} → {now[name]}" for name in now if name in before and before[name] != now[name]]
    new = [f"{name}: {now[name]} (new)" for name in now if name not in before]
    gone = [f"{name}: {before[name]} (gone)" for name in before if name not in now]
    return tuple(changed + new + gone)
