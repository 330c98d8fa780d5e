"""Folder of model files: `OWNER/NAME/FILE.gguf`, and in each model's folder a record of where its files came from."""

import json
import shutil
from pathlib import Path

import msgspec
from msgspec import Struct

from agent_workbench.core.errors import UsageError
from agent_workbench.subjects.models.model_files import SUFFIX, HubFile, HubName, HubRevision, StoredModel
from agent_workbench.system.atomic_files import write_atomically

RECORD = "source.json"


class _Stored(Struct, frozen=True):
    """Files of one quantization, and the commit they are from."""

    commit: str
    files: tuple[HubFile, ...]


class ModelFolder:
    """Models below `root`. All methods block."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def of(self, name: HubName) -> Path:
        """Return the folder of a model, which may not exist."""
        return self.root / name.owner / name.name

    def keep(self, revision: HubRevision, files: tuple[HubFile, ...]) -> None:
        """Record files that were brought whole."""
        folder = self.of(revision.name)
        known = {**self._record(folder), files[0].quant: _Stored(revision.commit, files)}
        write_atomically(folder / RECORD, json.dumps(msgspec.to_builtins(known), indent=1).encode() + b"\n")

    def stored(self) -> tuple[StoredModel, ...]:
        """Return all models that are whole, by name."""
        found = []
        for record in sorted(self.root.glob(f"*/*/{RECORD}")):
            folder = record.parent
            for quant, each in self._record(folder).items():
                paths = [folder / file.path for file in each.files]
                if each.files and all(path.is_file() for path in paths):
                    name = HubName(folder.parent.name, folder.name, quant)
                    found.append(StoredModel(name, each.commit, str(paths[0]), sum(file.size for file in each.files)))
        return tuple(found)

    def remove(self, name: HubName) -> int:
        """Remove a model, or one quantization of it; return the freed bytes. Raises `UsageError` if it is not here."""
        folder = self.of(name)
        if not folder.is_dir() or folder.is_symlink():
            known = ", ".join(str(each.name) for each in self.stored()) or "none"
            raise UsageError(f"{name} is not in {self.root}", advice=f"models there: {known}")
        record = self._record(folder)
        if name.quant and name.quant not in record:
            raise UsageError(f"{name} is not in {self.root}", advice=f"of {name.repo} there: {', '.join(record)}")
        before = _bytes_in(folder)
        left = {quant: each for quant, each in record.items() if name.quant and quant != name.quant}
        if left:
            for file in record[name.quant].files:
                (folder / file.path).unlink(missing_ok=True)
            write_atomically(folder / RECORD, json.dumps(msgspec.to_builtins(left), indent=1).encode() + b"\n")
            return before - _bytes_in(folder)
        shutil.rmtree(folder)
        return before

    def _record(self, folder: Path) -> dict[str, _Stored]:
        """Return what is recorded of a model's folder; what cannot be read, or names other places, is left out."""
        try:
            found = msgspec.json.decode((folder / RECORD).read_bytes(), type=dict[str, _Stored])
        except (OSError, msgspec.DecodeError):
            return {}
        inside = folder.resolve()
        return {
            quant: each for quant, each in found.items() if all(_is_below(inside, file.path) for file in each.files)
        }


def _is_below(folder: Path, path: str) -> bool:
    return path.endswith(SUFFIX) and (folder / path).resolve().is_relative_to(folder)


def _bytes_in(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
