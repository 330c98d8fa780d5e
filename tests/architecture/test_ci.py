"""What `.ci/run` does on a machine without bubblewrap. apt-get, sudo and make are stand-ins: nothing is installed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT

APT = """\
#!/bin/sh
echo "apt-get $*" >> {folder}/log
case "$*" in
  update*) touch {folder}/lists ;;
  install*) test {works} = yes -a -e {folder}/lists && ln -s /bin/true {folder}/bin/bwrap ;;
esac
"""
pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="machine lacks: Linux")


def run_ci(folder: Path, *, works: str, uid: int, sudo: bool) -> tuple[str, list[str]]:
    """Return what it said, and what was called."""
    tools = folder / "bin"
    tools.mkdir()
    for name in ("bash", "sh", "dirname", "uname", "env", "touch", "ln", "test", "true"):
        (tools / name).symlink_to(str(shutil.which(name)))
    scripts = {
        "apt-get": APT.format(folder=folder, works=works),
        "id": f"#!/bin/sh\necho {uid}\n",
        "make": f'#!/bin/sh\necho "make $* CI=$CI" >> {folder}/log\n',
        "sudo": '#!/bin/sh\nshift; exec "$@"\n' if sudo else "#!/bin/sh\nexit 1\n",
    }
    for name, text in scripts.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    environ = {**os.environ, "PATH": str(tools), "CI": "true"}
    done = subprocess.run(
        [str(tools / "bash"), ROOT / ".ci" / "run"], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stderr, (folder / "log").read_text().splitlines()


@pytest.mark.parametrize(("uid", "sudo"), [(0, False), (1000, True)])
def test_bubblewrap_is_installed_where_that_is_allowed(uid: int, sudo: bool, tmp_path: Path) -> None:
    said, calls = run_ci(tmp_path, works="yes", uid=uid, sudo=sudo)
    install = "apt-get install -y -q --no-install-recommends bubblewrap"
    assert calls == [install, "apt-get update -q", install, "make check CI=true", "make judge CI=true"]
    assert "SKIPPED" not in said


@pytest.mark.parametrize(("works", "uid"), [("no", 0), ("yes", 1000)])
def test_without_bubblewrap_it_goes_on_and_says_so(works: str, uid: int, tmp_path: Path) -> None:
    said, calls = run_ci(tmp_path, works=works, uid=uid, sudo=False)
    assert calls[-2:] == ["make check CI=true", "make judge CI=true"]
    assert "bubblewrap is missing" in said
    assert "apt-get install bubblewrap" in said
