"""The file `.env` of a repository: the five names in it that count as settings once the repository is trusted."""

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from msgspec import Struct, field

from agent_workbench.core.errors import StorageError
from agent_workbench.system.repo_files import read_inside

ENV_FILE = ".env"
API_KEY = "LLM_API_KEY"
SETTING_OF = {
    API_KEY: "model.api_key_env",
    "LLM_API_BASE_URL": "model.url",
    "LLM_MODEL_NAME": "model.name",
    "SKILLS_FOLDER_PATH": "skills.dirs",
    "SCRIPT_TIMEOUT_SECONDS": "skills.script_seconds",
}
"""Setting of each name; the key itself goes into the environment, and the setting names its variable."""
MEANINGS = {
    API_KEY: "is sent to the model's server",
    "LLM_API_BASE_URL": "is sent your code",
    "LLM_MODEL_NAME": "is the model that is asked for",
    "SKILLS_FOLDER_PATH": "is a folder of skills",
    "SCRIPT_TIMEOUT_SECONDS": "is how long a script may run",
}
DIGEST_CHARS = 12
MAX_BYTES = 256 * 1024
_LINE = re.compile(r"\s*(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*=\s*(?P<value>.*?)\s*")
_QUOTED = re.compile(r"(?P<quote>[\"'])(?P<text>.*?)(?P=quote)\s*(?:#.*)?")


class EnvValue(Struct, frozen=True):
    """Value of a name with its origin: `.env:3`, or the variable of the environment that has the same name.

    `in_file` is the value in the file, which the user is asked about.
    """

    text: str
    origin: str
    in_file: str


class EnvFile(Struct, frozen=True):
    """The names of `SETTING_OF` that stand in the file, with their values. All else in it is the repository's own."""

    values: Mapping[str, EnvValue] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The key of the model's server, empty if the file has none."""
        found = self.values.get(API_KEY)
        return found.text if found is not None else ""

    def trust_items(self) -> Iterator[tuple[str, str]]:
        """Yield what the user is asked about: each name in the file with its value, of the key only a digest."""
        for name, value in sorted(self.values.items()):
            digest = sha256(value.in_file.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARS]
            yield f"{name} in {ENV_FILE}", f"a key, sha256 {digest}…" if name == API_KEY else value.in_file


def meaning_of(item: str) -> str:
    """Return what an item of the trust question does, empty for items of other sources."""
    name, _, file = item.partition(" in ")
    return MEANINGS.get(name, "") if file == ENV_FILE else ""


def read_env_file(root: Path, environ: Mapping[str, str]) -> EnvFile:
    """Return the names that count of the `.env` at `root`; a variable of the environment wins over its line. Blocks.

    A file that cannot be read, is too long or leads out of the repo counts as empty: without trust it must not even
    stop a command.
    """
    try:
        data = read_inside(root, ENV_FILE, MAX_BYTES)
    except StorageError:
        return EnvFile()
    found: dict[str, EnvValue] = {}
    for number, line in enumerate((data or b"").decode("utf-8", "replace").splitlines(), 1):
        match = _LINE.fullmatch(line)
        name = match["name"] if match is not None else ""
        if match is None or name not in SETTING_OF:
            continue
        found.pop(name, None)
        if text := _unquoted(match["value"]):
            own = environ.get(name, "")
            found[name] = EnvValue(own or text, f"environment {name}" if own else f"{ENV_FILE}:{number}", text)
    return EnvFile(found)


def _unquoted(value: str) -> str:
    quoted = _QUOTED.fullmatch(value)
    return quoted["text"] if quoted is not None else re.split(r"(?:^|\s)#", value, maxsplit=1)[0].strip()
