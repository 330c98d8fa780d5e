"""Layers of settings: the values of one source (file, environment, flags) by dotted key."""

import difflib
import re
import types
import typing
from collections.abc import Mapping

from msgspec import Struct

from agent_workbench.config.env_file import API_KEY, SETTING_OF, EnvFile
from agent_workbench.config.schema import (
    ANY,
    KnownKeys,
    child_names,
    is_given_name,
    is_group,
    known_key,
    setting_keys,
)
from agent_workbench.config.value_checks import canonical_value, removed_value_advice, value_problem
from agent_workbench.config.yaml_parser import compose_text
from agent_workbench.core.errors import ConfigError
from agent_workbench.core.text.amounts import did_you_mean, quoted
from agent_workbench.core.yaml_documents import (
    DocumentError,
    Mark,
    Node,
    YamlMapping,
    YamlScalar,
    YamlSequence,
    expected,
    is_nothing,
    join,
    read_value,
)

PREFIX = "AGENT_"
FLAGS = {"model.path": "--model", "model.url": "--model-url", "model.name": "--model-name", "roles": "--endpoint"}
"""Flag of a key, or of the keys of a group, if there is one."""
NO_KEYS = "keep keys out of files: name the environment variable that holds it in {}"
KEY_NAME = "api_key_env"
FORGE_KEY = "forge.token_env"
NEARLY_THE_SAME = 0.9
GONE = {
    "bm25": "remove the key: code is ranked by BM25 with fixed constants",
    "webhook_secret_env": "remove the key: workers look at the forge each `forge.poll_seconds`",
}
"""Keys, or words of keys, that are no settings any more, and what to do."""
SECRET_WORDS = {"key", "apikey", "token", "secret", "password", "bearer", "authorization", "credentials"}


class SourcedValue(Struct, frozen=True):
    """Value of a setting with its source: `.agent.yml:3`, `environment AGENT_PYTHON`, `flag`.

    `place` adds the column; `items` are the positions of the items of a list.
    """

    value: object
    origin: str
    place: str = ""
    items: tuple[str, ...] = ()

    @property
    def location(self) -> str:
        """The most exact known position."""
        return self.place or self.origin


Layer = Mapping[str, SourcedValue]


def file_layer(node: Node | None, file: str) -> Layer:
    """Return the layer of a settings file; raise `DocumentError` for unknown keys and invalid values."""
    found: dict[str, SourcedValue] = {}
    if node is not None and not is_nothing(node):
        _read_group(node, "", file, setting_keys(), found)
    return found


def environment_layer(environ: Mapping[str, str]) -> Layer:
    """Return the layer of variables such as `AGENT_MODEL__URL` (in any case); raise `ConfigError`.

    A variable without `__` that matches no key belongs to another program and is ignored.
    """
    known = setting_keys()
    found: dict[str, SourcedValue] = {}
    for name in sorted(environ):
        if not name.upper().startswith(PREFIX):
            continue
        key = name[len(PREFIX) :].lower().replace("__", ".")
        if "." not in key and key not in known and not is_group(key, known):
            continue
        said = SourcedValue(
            _from_text(key, environ[name], f"environment variable {name}", known), f"environment {name}"
        )
        if key in found and found[key].value != said.value:
            raise ConfigError(
                f"environment variables {found[key].origin.split()[1]} and {name} have different values",
                advice="unset one of them",
            )
        found[key] = said
    return found


def flag_layer(overrides: Mapping[str, str]) -> Layer:
    """Return the layer of flags, given as text by dotted key; raise `ConfigError`."""
    known = setting_keys()
    places = {key: f"flag {FLAGS.get(key) or FLAGS.get(key.split('.')[0], key)}" for key in overrides}
    return {
        key: SourcedValue(_from_text(key, text, places[key], known), "flag", places[key])
        for key, text in overrides.items()
    }


def env_file_layer(file: EnvFile) -> Layer:
    """Return the layer of a `.env` file; raise `ConfigError` that names its line."""
    known = setting_keys()
    found: dict[str, SourcedValue] = {}
    for name, value in file.values.items():
        key, text = SETTING_OF[name], API_KEY if name == API_KEY else value.text
        found[key] = SourcedValue(_from_text(key, text, f"{value.origin}: {name}", known), value.origin)
    return found


def server_layer(environ: Mapping[str, str]) -> Layer:
    """Return the layer of llama.cpp's own variables, which count only if no other layer has a value."""
    known = setting_keys()
    heard = {"model.url": "LLAMA_SERVER_URL", "model.server": "LLAMA_SERVER"}
    return {
        key: SourcedValue(_from_text(key, text, f"environment variable {name}", known), f"environment {name}")
        for key, name in heard.items()
        if (text := environ.get(name, ""))
    }


def _read_group(node: Node, path: str, file: str, known: KnownKeys, found: dict[str, SourcedValue]) -> None:
    if not isinstance(node, YamlMapping):
        raise expected(node, "a mapping", path, "`agent init` writes an example")
    given = child_names(path, known) == [ANY]
    for key, value in node.entries:
        dotted = join(path, key.text)
        if given:
            _check_name(key, value, dotted)
        if known_key(dotted, known):
            if not is_nothing(value):
                found[dotted] = _from_file(dotted, value, known, file)
        elif not is_group(dotted, known):
            raise _unknown(key, path, known)
        elif not is_nothing(value):
            _read_group(value, dotted, file, known, found)


def _check_name(key: YamlScalar, value: Node, dotted: str) -> None:
    """Refuse a name that no environment variable can spell, and a name without a value."""
    if not is_given_name(key.text):
        raise DocumentError(
            key.start,
            f"expected a name of small letters and digits, joined by single '-' or '_', found {quoted(key.text)}",
        )
    if is_nothing(value) or (isinstance(value, YamlMapping) and not value.entries):
        raise DocumentError(
            key.start, f"{dotted}: expected a value, found nothing", "remove the key, or give it a value"
        )


def _from_file(dotted: str, node: Node, known: KnownKeys, file: str) -> SourcedValue:
    key = known_key(dotted, known)
    value = _typed_value(node, known[key].wanted, key, dotted)
    if wrong := value_problem(key, value):
        place = _faulty_item(key, node, value).start
        raise DocumentError(place, f"{dotted}: {wrong}", NO_KEYS.format(dotted) if key.endswith(KEY_NAME) else "")
    items = tuple(_place(item, file) for item in node.items) if isinstance(node, YamlSequence) else ()
    return SourcedValue(canonical_value(key, value), f"{file}:{node.start.line}", _place(node, file), items)


def _typed_value(node: Node, wanted: object, key: str, path: str) -> object:
    """Return the value of a key; raise `DocumentError` that names `path` for a wrong type or a removed value."""
    if isinstance(node, YamlScalar) and (advice := removed_value_advice(key, node.text)):
        what = f"{quoted(node.text)} was removed"
        raise DocumentError(node.start, f"{path}: {what}" if path else what, advice)
    return read_value(node, wanted, path)


def _faulty_item(key: str, node: Node, value: object) -> Node:
    """Return the first faulty item of a list, else the node."""
    pairs = zip(node.items, value, strict=True) if isinstance(node, YamlSequence) and isinstance(value, tuple) else ()
    return next((item for item, each in pairs if value_problem(key, (each,))), node)


def _place(node: Node, file: str) -> str:
    return f"{file}:{node.start.line}:{node.start.column}"


def _unknown(key: YamlScalar, path: str, known: KnownKeys) -> DocumentError:
    dotted = join(path, key.text)
    here = sorted(child_names(path, known))
    proposal = did_you_mean(key.text, here)
    if advice := _gone(dotted):
        return DocumentError(key.start, f"{quoted(dotted)} is no setting", advice)
    # `context_token` is a typing error, not a secret.
    if _names_a_secret(key.text) and "_tokens" not in proposal:
        belongs = (
            FORGE_KEY if FORGE_KEY.startswith(f"{path}.") else join(path if KEY_NAME in here else "model", KEY_NAME)
        )
        return DocumentError(key.start, f"{quoted(dotted)} does not belong in a file", NO_KEYS.format(belongs))
    elsewhere = _key_elsewhere(key.text, path, known)
    proposal = f"; did you mean {elsewhere!r}?" if elsewhere else proposal
    where = f" in {path}" if path else ""
    return DocumentError(
        key.start, f"unknown key {quoted(key.text)}{where}{proposal}", f"known keys{where}: {', '.join(here)}"
    )


def _key_elsewhere(name: str, path: str, known: KnownKeys) -> str:
    """Return the key of a name in the wrong group, or of one at the top with `_` for each dot; else an empty text."""
    plain = [each for each in known if ANY not in each]
    flat = {each.replace(".", "_"): each for each in plain if "." in each and not path}
    near = difflib.get_close_matches(name[:100], flat, 1, NEARLY_THE_SAME)
    return next((each for each in plain if each.endswith(f".{name}")), flat[near[0]] if near else "")


def _gone(dotted: str) -> str:
    """Return what to do about a key that is no setting any more; empty for any other."""
    return next((GONE[name] for name in GONE if re.search(rf"(?:^|[._]){name}(?:[._]|$)", dotted.lower())), "")


def _names_a_secret(name: str) -> bool:
    words = re.split(r"[^a-z0-9]+", name.lower())
    return bool(SECRET_WORDS & set(words)) or "api_key" in "_".join(words)


def _from_text(key: str, text: str, source: str, known: KnownKeys) -> object:
    """Return the value of a key from the text of a variable or a flag; lists are `[a, b]` or `a,b`."""
    if not known_key(key, known) and (advice := _gone(key)):
        raise ConfigError(f"{source}: {quoted(key)} is no setting", advice=advice)
    if is_group(key, known):
        inner = next(each for each in known if each.startswith(f"{key}.") or not known_key(key, known))
        raise ConfigError(f"{source}: {key} is a group of settings", advice=f"name a setting in it, such as {inner}")
    if not (named := known_key(key, known)):
        raise _unknown_variable(key, source, known)
    if ANY in named and not all(map(is_given_name, key.split("."))):
        raise ConfigError(
            f"{source}: {quoted(key)} contains an invalid endpoint name",
            advice="use small letters and digits, joined by '-'",
        )
    wanted = known[named].wanted
    try:
        value = _typed_value(_text_node(text, wanted), wanted, named, "")
    except DocumentError as fault:
        raise ConfigError(f"{source}: {fault.what}", advice=fault.advice) from fault
    if wrong := value_problem(named, value):
        raise ConfigError(f"{source}: {wrong}")
    return canonical_value(named, value)


def _unknown_variable(key: str, source: str, known: KnownKeys) -> ConfigError:
    """Return the error for an unknown key, without its value, which may be a secret."""
    group, _, name = key.rpartition(".")
    if _names_a_secret(name) and "_tokens" not in name:
        belongs = f"{group if known_key(f'{group}.{KEY_NAME}', known) else 'model'}.{KEY_NAME}"
        belongs = FORGE_KEY if FORGE_KEY.startswith(f"{group}.") else belongs
        variable = f"{PREFIX}{belongs.replace('.', '__').upper()}"
        return ConfigError(
            f"{source}: {quoted(key)} is no setting: settings hold no keys",
            advice=f"put the key in a variable of another name, and that name in {belongs} (or {variable})",
        )
    given = key.split(".")
    here = [".".join(_fill(each.split("."), given)) for each in known]
    return ConfigError(f"{source}: unknown setting {quoted(key)}{did_you_mean(key, here)}")


def _fill(parts: list[str], given: list[str]) -> list[str]:
    """Return the parts of a key, with wildcards replaced by the given names."""
    return [given[at] if part == ANY and at < len(given) else part for at, part in enumerate(parts)]


def _text_node(text: str, wanted: object) -> Node:
    start, end = Mark(0, 1, 1), Mark(len(text), 1, len(text) + 1)
    if "tuple" not in str(wanted):
        of = typing.get_args(wanted)[0] if isinstance(wanted, types.UnionType) else wanted
        return YamlScalar(text, of in {bool, int, float}, start, end)
    if text.lstrip().startswith(("[", "{")):
        return compose_text(text) or YamlScalar("", True, start, end)
    items = [each.strip() for each in text.split(",") if each.strip()]
    return YamlSequence(tuple(YamlScalar(each, False, start, end) for each in items), True, start, end)
