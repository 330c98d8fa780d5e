"""Model file as a server reads it: its header, and the bytes of all its parts."""

import os
import re
from pathlib import Path

from msgspec import Struct

from agent_workbench.adapters.llama_cpp.local_models.gguf_header import MAGIC, HeaderError, read_gguf_facts
from agent_workbench.core.errors import ModelUnavailable
from agent_workbench.core.local_models.server_options import GgufFacts
from agent_workbench.system.regular_files import open_regular

PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf", re.IGNORECASE | re.DOTALL)
MOST_PARTS = 1_000


class ModelFile(Struct, frozen=True):
    """Facts and size of a model, of all its parts; a header that cannot be read leaves the facts unknown."""

    facts: GgufFacts
    size: int


def read_model_file(model: Path) -> ModelFile:
    """Return facts and size of the model in a file; raise `ModelUnavailable` if it cannot be read or is no GGUF."""
    advice = "set model.path to a GGUF file"
    try:
        with os.fdopen(open_regular(model, follow=True), "rb") as file:
            begins = file.read(len(MAGIC))
        size = sum(part.stat().st_size for part in parts_of(model))
    except OSError as error:
        raise ModelUnavailable(f"the model {model} cannot be read: {error.strerror}", advice=advice) from error
    if begins != MAGIC:
        raise ModelUnavailable(f"{model} is no GGUF file: it begins with {begins!r}", advice=advice)
    try:
        return ModelFile(read_gguf_facts(model), size)
    except (HeaderError, OSError):
        # The server says what is wrong with it, or knows more than we do.
        return ModelFile(GgufFacts(), size)


def parts_of(model: Path) -> tuple[Path, ...]:
    """Return the parts of a model that is split into files, else the file alone."""
    found = PART.fullmatch(model.name)
    count = int(found[3]) if found else 1
    if found is None or count > MOST_PARTS:
        return (model,)
    suffix = model.name[-len(".gguf") :]
    return tuple(model.with_name(f"{found[1]}-{part:05}-of-{found[3]}{suffix}") for part in range(1, count + 1))
