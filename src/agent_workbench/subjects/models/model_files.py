"""Model files of a hub: how they are named, which of a repository's files are meant, and what is stored here."""

import re
from pathlib import PurePosixPath

from msgspec import Struct

from agent_workbench.core.errors import UsageError
from agent_workbench.core.text.amounts import quoted

SUFFIX = ".gguf"
USUAL = ("Q4_K_M", "Q4_K_S", "Q5_K_M", "Q4_0", "Q8_0")
"""Quantizations that are taken where none is named, the first that is there."""
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_-])?"
_REFERENCE = re.compile(rf"({_NAME})/({_NAME})(?::([A-Za-z0-9][A-Za-z0-9_-]{{0,40}}))?", re.ASCII)
_QUANT = re.compile(
    r"(?:^|[-._/])((?:UD-)?(?:I?Q\d[A-Z0-9_]*|TQ\d_\d|BF16|F16|F32|MXFP4(?:_MOE)?))(?=[-./]|$)", re.IGNORECASE
)
_PART = re.compile(r"-(\d{5})-of-(\d{5})$")


class HubName(Struct, frozen=True):
    """A model of a hub, `owner/name`, and the quantization that is wanted (empty: a usual one)."""

    owner: str
    name: str
    quant: str = ""

    @property
    def repo(self) -> str:
        """Owner and name as the hub spells them."""
        return f"{self.owner}/{self.name}"

    def __str__(self) -> str:
        return f"{self.repo}:{self.quant}" if self.quant else self.repo


class HubFile(Struct, frozen=True):
    """A file of a revision: its path there, its size in bytes, and the SHA-256 that the hub states."""

    path: str
    size: int
    sha256: str

    @property
    def quant(self) -> str:
        """The quantization in its name, empty if there is none."""
        found = _QUANT.findall(self.path.removesuffix(SUFFIX))
        return str(found[-1]).upper() if found else ""


class HubRevision(Struct, frozen=True):
    """The files of one commit of a model's repository."""

    name: HubName
    commit: str
    files: tuple[HubFile, ...]


class StoredModel(Struct, frozen=True):
    """A model in the folder of models: where it came from, the path of its file (of parts the first), and its bytes."""

    name: HubName
    commit: str
    path: str
    size: int


def read_hub_name(text: str) -> HubName:
    """Return the model that a text names, as `owner/name` or `owner/name:QUANT`; raise `UsageError`."""
    found = _REFERENCE.fullmatch(text)
    if found is None or ".." in text:
        raise UsageError(f"{quoted(text)} is no model of a hub", advice="name it as OWNER/NAME or OWNER/NAME:QUANT")
    return HubName(found[1], found[2], (found[3] or "").upper())


def wanted_files(revision: HubRevision) -> tuple[HubFile, ...]:
    """Return the file of the wanted quantization, or all of its parts in order; raise `UsageError`."""
    models = [each for each in revision.files if _is_model(each)]
    kinds = list(dict.fromkeys(each.quant for each in sorted(models, key=lambda each: each.path)))
    wanted = revision.name.quant or next((usual for usual in USUAL if usual in kinds), kinds[0] if kinds else "")
    if wanted not in kinds:
        known = ", ".join(filter(None, kinds))
        advice = f"it has {known}" if known else "choose a repository with GGUF files"
        raise UsageError(f"{revision.name.repo} has no GGUF file{f' of {wanted}' if wanted else ''}", advice=advice)
    wholes: dict[tuple[str, int], dict[int, HubFile]] = {}
    for each in models:
        if each.quant == wanted:
            stem, number, count = _part(each.path)
            wholes.setdefault((stem, count), {})[number] = each
    (stem, count), parts = min(wholes.items())
    if sorted(parts) != list(range(1, count + 1)):
        raise UsageError(
            f"{quoted(stem)} of {revision.name.repo} lacks some of its {count} parts", advice="choose another one"
        )
    return tuple(parts[number] for number in sorted(parts))


def _is_model(file: HubFile) -> bool:
    """Return True for a file of a language model: a projector of images alone can do nothing."""
    return file.path.lower().endswith(SUFFIX) and not PurePosixPath(file.path).name.lower().startswith("mmproj")


def _part(path: str) -> tuple[str, int, int]:
    """Return the name of the file that a path is a part of, the number of the part, and the count of parts."""
    stem = path.removesuffix(SUFFIX)
    found = _PART.search(stem)
    return (stem[: found.start()], int(found[1]), int(found[2])) if found else (stem, 1, 1)
