"""Rule store: the rules of the repo and the user, edits of them that change nothing else, past actions."""

import asyncio
import json
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import fields

from agent_workbench.core.approval_rules import RuleScope, StoredRule, rule_problem
from agent_workbench.core.errors import ConfigError, TrustError, UsageError
from agent_workbench.core.history.past_actions import PastActions
from agent_workbench.core.settings import Permission, Rule
from agent_workbench.core.yaml_documents import (
    MAX_BYTES,
    DocumentError,
    Node,
    YamlMapping,
    YamlScalar,
    YamlSequence,
    after_lines,
    decode_document,
    expected,
    is_nothing,
    line_end,
    line_start,
    read_value,
    unknown_key,
    with_flow_item,
    with_last_lines,
    with_lines,
    with_value,
)
from agent_workbench.system.folder_trees import only_owner_writes
from agent_workbench.system.repo_files import change_inside, read_inside

Compose = Callable[[str], Node | None]
Keys = tuple[str, ...]
Plain = str | list["Plain"] | dict[str, "Plain"] | None
# Our own keys need no quotes; all other text gets them.
BARE = ("approvals", "rules", "everywhere", "repos")
_COMMA = re.compile(r"\s*,[ \t]*")

SETTINGS = ".agent.yml"
OWN = "rules.yaml"
REPO_KEYS: Keys = ("approvals", "rules")
EVERYWHERE, REPOS = "everywhere", "repos"
HEADING = "# Your own rules, for all repos and for single ones; `agent rules` lists those that count in a repo.\n"

Trusted = Callable[[Rule, bool, Callable[[], None]], None]
"""Called with a rule, True if it is added, and a writer: runs the writer and renews the trust in the file."""


def rules_at(text: str, keys: Keys, compose: Compose) -> tuple[Rule, ...]:
    """Return the rules in the list at `keys`, none if there is no list; raise `DocumentError`."""
    node = _walk(compose(text), keys)
    found = read_value(node, tuple[Rule, ...], ".".join(keys)) if node is not None and not is_nothing(node) else ()
    return tuple(each for each in found if isinstance(each, Rule)) if isinstance(found, tuple) else ()


def with_rule(text: str, keys: Keys, rule: Rule, compose: Compose) -> str:
    """Return the text with the rule in the list at `keys`; raise `DocumentError`, or `ConfigError` if it cannot."""
    before = rules_at(text, keys, compose)
    return text if rule in before else _checked(text, keys, rule, (*before, rule), compose)


def without_rule(text: str, keys: Keys, rule: Rule, compose: Compose) -> str:
    """Return the text without the rule; raise as `with_rule` does."""
    before = rules_at(text, keys, compose)
    left = tuple(each for each in before if each != rule)
    return text if left == before else _checked(text, keys, rule, left, compose)


def render_rule(rule: Rule) -> str:
    """Return the rule as one line of YAML."""
    said = [(each.name, getattr(rule, each.name)) for each in fields(rule)]
    return "{" + ", ".join(f"{name}: {_rendered(value)}" for name, value in said if value) + "}"


def _checked(text: str, keys: Keys, rule: Rule, wanted: tuple[Rule, ...], compose: Compose) -> str:
    """Return the edited text, which reads back as intended."""
    edit = _added if rule in wanted else _removed
    same = _but(_plain(compose(text)), keys)
    try:
        found = edit(text, keys, rule, compose)
        if rules_at(found, keys, compose) == wanted and _but(_plain(compose(found)), keys) == same:
            return found
    except (DocumentError, ValueError):
        pass
    what = "written" if rule in wanted else "taken out"
    raise ConfigError("the rule could not be " + what, advice=f"do it by hand: {'.'.join(keys)}: {render_rule(rule)}")


def _added(text: str, keys: Keys, rule: Rule, compose: Compose) -> str:
    root, said = compose(text), render_rule(rule)
    found = [node for depth in range(len(keys) + 1) if (node := _walk(root, keys[:depth])) is not None]
    rest = keys[len(found) - 1 :]
    match found[-1] if found else None:
        case YamlSequence(items=items, flow=False) as listing if items and not rest:
            indent = " " * (listing.start.column - 1)
            return _inserted(text, after_lines(text, listing), f"{indent}- {said}\n")
        case YamlSequence(flow=True) as listing if not rest:
            return with_flow_item(text, listing, said)
        case YamlMapping(flow=True) as mapping if rest:
            return with_flow_item(text, mapping, _flow(rest, said).removeprefix("{").removesuffix("}"))
        case YamlMapping(entries=entries) if rest and rest != keys:
            first = entries[0][0].start
            return _inserted(text, first.index - first.column + 1, _nested(rest, said, first.column - 1))
        case YamlScalar() as nothing if is_nothing(nothing) and rest != keys:
            return with_value(text, nothing, _flow(rest, said))
        case YamlMapping() | YamlScalar() | None:
            return with_last_lines(text, _nested(keys, said, 0))
    raise ValueError


def _nested(keys: Keys, rule: str, indent: int) -> str:
    heads = [f"{' ' * (indent + 2 * n)}{_rendered(key)}:\n" for n, key in enumerate(keys)]
    return "".join(heads) + f"{' ' * (indent + 2 * len(keys))}- {rule}\n"


def _flow(keys: Keys, rule: str) -> str:
    return f"{{{_rendered(keys[0])}: {_flow(keys[1:], rule)}}}" if keys else f"[{rule}]"


def _removed(text: str, keys: Keys, rule: Rule, compose: Compose) -> str:
    listing = _walk(compose(text), keys)
    if not isinstance(listing, YamlSequence):
        return text
    for number in reversed(range(len(listing.items))):
        if read_value(listing.items[number], Rule, "") == rule:
            start, end = _flow_span(text, listing, number) if listing.flow else _block_span(text, listing, number)
            text = text[:start] + text[end:]
    return text


def _block_span(text: str, listing: YamlSequence, number: int) -> tuple[int, int]:
    item = listing.items[number]
    start = line_start(text, item.start.index)
    if text[start : item.start.index].strip() != "-":
        raise ValueError
    return start, after_lines(text, item)


def _flow_span(text: str, listing: YamlSequence, number: int) -> tuple[int, int]:
    """Return the span of an item with one comma, and without the comments of its neighbours."""
    start, end = listing.items[number].start.index, listing.items[number].end.index
    before = listing.items[number - 1].end.index if number else start
    if text[before:start].strip() == ",":
        return before, end
    found = _COMMA.match(text, end)
    end = found.end() if found else end
    line, rest = line_start(text, start), line_end(text, end)
    return (start, end) if text[line:start].strip() or text[end:rest].strip() else (line, rest)


def _rendered(value: object) -> str:
    if isinstance(value, bool):
        return "true"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_rendered, value))}]"
    text = str(value)
    return text if isinstance(value, Permission) or text in BARE else json.dumps(text, ensure_ascii=False)


def _walk(node: Node | None, keys: Keys) -> Node | None:
    for key in keys:
        node = node.get(key) if isinstance(node, YamlMapping) else None
    return node


def _inserted(text: str, index: int, lines: str) -> str:
    return with_lines(text[:index], lines, text[index:])


def _plain(node: Node | None) -> Plain:
    match node:
        case YamlScalar():
            return None if is_nothing(node) else node.text
        case YamlSequence():
            return [_plain(each) for each in node.items]
        case YamlMapping():
            return {key.text: _plain(value) for key, value in node.entries}
        case _:
            return None


def _but(value: Plain, keys: Keys) -> Plain:
    """Return the value without the part at `keys`, and without parts that are empty then."""
    if not isinstance(value, dict):
        return value or None
    first, *rest = keys
    inner = _but(value.get(first), tuple(rest)) if rest else None
    left = {key: each for key, each in value.items() if key != first} | ({first: inner} if inner else {})
    return left or None


class RuleFiles:
    """Implements `core.ports.repo_files.RuleStore` for the repo at `root`; the user's file is in `own_folder`."""

    def __init__(
        self,
        root: Path,
        own_folder: Path,
        compose: Compose,
        trusted: Trusted,
        past: Callable[[Permission], PastActions],
    ) -> None:
        self._root = root
        self._own_folder = own_folder
        self._compose = compose
        self._trusted = trusted
        self._past = past

    async def kept(self) -> tuple[StoredRule, ...]:
        return await asyncio.to_thread(self._own)

    async def keep(self, kept: StoredRule) -> None:
        await asyncio.to_thread(self._change, kept, True)

    async def revoke(self, kept: StoredRule) -> None:
        await asyncio.to_thread(self._change, kept, False)

    async def past(self, kind: Permission) -> PastActions:
        return await asyncio.to_thread(self._past, kind)

    def _own(self) -> tuple[StoredRule, ...]:
        data = read_inside(self._own_folder, OWN, MAX_BYTES)
        if data is None:
            return ()
        self._check_ours()
        try:
            text = decode_document(data)
            self._check_keys(text)
            found = tuple(
                StoredRule(rule, kept)
                for kept in (RuleScope.USER, RuleScope.EVERYWHERE)
                for rule in rules_at(text, self._keys(kept), self._compose)
            )
        except DocumentError as fault:
            raise ConfigError(fault.in_file(str(self._own_folder / OWN)), advice=fault.advice) from fault
        if why := next(filter(None, (rule_problem(each.rule) for each in found)), ""):
            raise ConfigError(f"{self._own_folder / OWN}: {why}", advice="change that rule, or remove it")
        return found

    def _check_ours(self) -> None:
        """Raise `TrustError` if somebody else could have written the user's rules."""
        path = self._own_folder / OWN
        if not only_owner_writes(path):
            raise TrustError(
                f"{path} can be written by others", advice=f"check it, then: chmod go-w {shlex.quote(str(path))}"
            )

    def _check_keys(self, text: str) -> None:
        root = self._compose(text)
        if root is None or is_nothing(root):
            return
        if not isinstance(root, YamlMapping):
            raise expected(root, f"a mapping with {EVERYWHERE} and {REPOS}", "")
        for key, _ in root.entries:
            if key.text not in (EVERYWHERE, REPOS):
                raise unknown_key(key, (EVERYWHERE, REPOS), "")
        repos = root.get(REPOS)
        for key, _ in repos.entries if isinstance(repos, YamlMapping) else ():
            if not key.text.startswith("/") or key.text != os.path.normpath(key.text):
                raise expected(key, "the absolute path of a repo", REPOS, "write it as `pwd -P` prints it there")

    def _change(self, kept: StoredRule, present: bool) -> None:
        if kept.kept is RuleScope.SESSION:
            raise UsageError("a session's rule is kept by the session alone")
        if kept.kept is RuleScope.REPO:
            self._trusted(kept.rule, present, lambda: self._write(self._root, SETTINGS, kept, present))
        else:
            self._write(self._own_folder, OWN, kept, present)

    def _write(self, folder: Path, name: str, kept: StoredRule, present: bool) -> None:
        def changed(data: bytes | None) -> bytes | None:
            if data is None and not present:
                return None
            heading = HEADING if name == OWN else ""
            change = with_rule if present else without_rule
            try:
                text = heading if data is None else decode_document(data)
                return change(text, self._keys(kept.kept), kept.rule, self._compose).encode()
            except DocumentError as fault:
                raise ConfigError(fault.in_file(name), advice=fault.advice) from fault

        fresh = name == OWN and not (folder / name).exists()
        change_inside(folder, name, MAX_BYTES, changed)
        if fresh and (folder / name).exists():
            (folder / name).chmod(0o600)

    def _keys(self, kept: RuleScope) -> Keys:
        match kept:
            case RuleScope.REPO:
                return REPO_KEYS
            case RuleScope.USER:
                return (REPOS, str(self._root.resolve()))
            case _:
                return (EVERYWHERE,)
