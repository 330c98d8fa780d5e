"""What one source of settings says, as values by dotted key: the file, the environment, the flags."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent_workbench.config.schema import NOT_YET, Leaf, groups, leaves, problem
from agent_workbench.config.yaml_file import compose_text
from agent_workbench.core.documents import DocumentFault, Listing, Mark, Node, Scalar, Table, nearest, shown
from agent_workbench.core.errors import ConfigError
from agent_workbench.core.typed_documents import expected, is_nothing, join, read_value

PREFIX = "AGENT_"
NO_KEYS = "keep keys out of files: name the environment variable that holds it in model.api_key_env"


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and where it was said: `.agent.yml:3`, `environment AGENT_PYTHON`, `flag`."""

    value: object
    origin: str


Layer = Mapping[str, Setting]


def file_layer(node: Node | None, file: str) -> Layer:
    """Return what the file says; raise `DocumentFault` for unknown keys and values that do not fit."""
    known = leaves()
    found: dict[str, Setting] = {}
    if node is not None and not is_nothing(node):
        _read_group(node, "", file, known, found)
    return found


def environment_layer(environ: Mapping[str, str]) -> Layer:
    """Return what variables such as `AGENT_MODEL__URL` say (in any case); raise `ConfigError`.

    A variable without `__` that is no key of ours belongs to somebody else and is passed over.
    """
    known = leaves()
    inside = groups(known)
    found: dict[str, Setting] = {}
    for name in sorted(environ):
        if not name.upper().startswith(PREFIX):
            continue
        key = name[len(PREFIX) :].lower().replace("__", ".")
        if "." not in key and key not in known and key not in inside:
            continue
        said = Setting(_from_text(key, environ[name], f"environment variable {name}", known), f"environment {name}")
        if key in found and found[key].value != said.value:
            raise ConfigError(f"environment variables {found[key].origin.split()[1]} and {name} say different things")
        found[key] = said
    return found


def flag_layer(overrides: Mapping[str, str]) -> Layer:
    """Return what flags say, given as dotted key to text; raise `ConfigError`."""
    known = leaves()
    return {key: Setting(_from_text(key, text, f"flag {key}", known), "flag") for key, text in overrides.items()}


def server_layer(environ: Mapping[str, str]) -> Layer:
    """Return what the variables of llama.cpp itself say; they count only where nothing else was said."""
    known = leaves()
    heard = {"model.url": "LLAMA_SERVER_URL", "model.server": "LLAMA_SERVER"}
    return {
        key: Setting(_from_text(key, text, f"environment variable {name}", known), f"environment {name}")
        for key, name in heard.items()
        if (text := environ.get(name, ""))
    }


def _read_group(node: Node, path: str, file: str, known: Mapping[str, Leaf], found: dict[str, Setting]) -> None:
    if not isinstance(node, Table):
        raise expected(node, "a mapping", path, "`agent init` writes an example")
    for key, value in node.entries:
        dotted = join(path, key.text)
        if dotted in known:
            if not is_nothing(value):
                found[dotted] = Setting(_from_file(dotted, value, known), f"{file}:{key.start.line}")
        elif dotted not in groups(known):
            raise _unknown(key, path, known)
        elif not is_nothing(value):
            _read_group(value, dotted, file, known, found)


def _from_file(key: str, node: Node, known: Mapping[str, Leaf]) -> object:
    value = read_value(node, known[key].wanted, key)
    if wrong := problem(key, value):
        raise DocumentFault(node.start, f"{key}: {wrong}", NO_KEYS if key == "model.api_key_env" else "")
    return value


def _unknown(key: Scalar, path: str, known: Mapping[str, Leaf]) -> DocumentFault:
    dotted = join(path, key.text)
    if "api_key" in key.text.lower().replace("-", "_"):
        return DocumentFault(key.start, f"{shown(dotted)} does not belong in a file", NO_KEYS)
    if dotted in NOT_YET or dotted.startswith("retrieval.chunker."):
        return DocumentFault(key.start, f"{dotted} is not supported yet by this version", "remove the key")
    here = sorted({each.removeprefix(path).lstrip(".").split(".")[0] for each in known if _is_under(each, path)})
    elsewhere = next((each for each in known if each.endswith(f".{key.text}")), "")
    proposal = f"; did you mean {elsewhere!r}?" if elsewhere else nearest(key.text, here)
    where = f" in {path}" if path else ""
    return DocumentFault(
        key.start, f"unknown key {shown(key.text)}{where}{proposal}", f"known keys{where}: {', '.join(here)}"
    )


def _is_under(key: str, path: str) -> bool:
    return not path or key.startswith(f"{path}.")


def _from_text(key: str, text: str, source: str, known: Mapping[str, Leaf]) -> object:
    """Return the value that a variable or a flag spells for a key; lists are `[a, b]` or `a,b`."""
    if key in NOT_YET:
        raise ConfigError(f"{source}: {key} is not supported yet by this version")
    if key in groups(known):
        inner = next(each for each in known if each.startswith(f"{key}."))
        raise ConfigError(f"{source}: {key} is a group of settings", advice=f"name one of it, such as {inner}")
    if key not in known:
        raise ConfigError(f"{source}: unknown setting {shown(key)}{nearest(key, known)}")
    wanted = known[key].wanted
    try:
        value = read_value(_spelled(text, wanted), wanted, "")
    except DocumentFault as fault:
        raise ConfigError(f"{source}: {fault.what}", advice=fault.advice) from fault
    if wrong := problem(key, value):
        raise ConfigError(f"{source}: {wrong}")
    return value


def _spelled(text: str, wanted: object) -> Node:
    start, end = Mark(0, 1, 1), Mark(len(text), 1, len(text) + 1)
    if "tuple" not in str(wanted):
        return Scalar(text, wanted in {bool, int, float}, start, end)
    if text.lstrip().startswith(("[", "{")):
        return compose_text(text) or Scalar("", True, start, end)
    items = [each.strip() for each in text.split(",") if each.strip()]
    return Listing(tuple(Scalar(each, False, start, end) for each in items), True, start, end)
