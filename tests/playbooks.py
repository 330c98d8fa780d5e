"""Stub of the environment of the skill `ansible-playbooks`, for tests that must not fetch packages.

The skill's own scripts run; below them `ansible-playbook` and `ansible-lint` are small programs, and `ansible_runner` a
module that starts the first as the real one does. Comments in a playbook say what the stub does, a line each:
`# stub: say TEXT`, `# stub: wait SECONDS`, `# stub: fail`, `# stub: shell COMMAND`. The real programs run in
`tests/judges`.
"""

import importlib.util
import sys
from pathlib import Path

from agent_workbench.subjects.playbooks_adapter import SKILL, AnsiblePrograms
from agent_workbench.subjects.skills.environment_adapter import COMPLETE, SkillEnvironments, read_requirements
from agent_workbench.subjects.skills.folder_adapter import bundled_skills

FINDING = (
    '{"type": "issue", "check_name": "no-changed-when", "categories": ["command-shell", "idempotency"], "severity": '
    '"major", "description": "Commands should not change things.", "location": {"path": "%s", "lines": {"begin": 3}}}'
)
RUNNER = """
import shlex, subprocess, types

def run(private_data_dir, project_dir, playbook, cmdline, event_handler, cancel_callback, quiet, suppress_env_files):
    words = ["ansible-playbook", *shlex.split(cmdline), playbook]
    with subprocess.Popen(words, cwd=project_dir, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        for line in child.stdout:
            event_handler({"event": "verbose", "stdout": line.rstrip("\\n")})
            if cancel_callback():
                child.kill()
    return types.SimpleNamespace(rc=child.returncode, status="successful")
"""
PLAYBOOK = """
import subprocess, sys, time
text, failed = open(sys.argv[-1]).read(), 0
print("ARGV", *sys.argv[1:-1], flush=True)
for line in text.splitlines():
    verb, _, rest = line.removeprefix("# stub: ").partition(" ") if line.startswith("# stub: ") else ("", "", "")
    if verb == "say":
        print(rest.encode().decode("unicode_escape"), flush=True)
    elif verb == "wait":
        time.sleep(float(rest))
    elif verb == "shell":
        subprocess.run(rest, shell=True)
    elif verb == "fail":
        failed = 1
changed = 0 if "--check" in sys.argv and not failed else 1
print("\\nPLAY RECAP " + "*" * 60)
print(f"web1                       : ok=2    changed={changed}    unreachable=0    failed={failed}    skipped=0")
sys.exit(2 if failed else 0)
"""
LINT = f"""
import os, sys
path = os.path.normpath(sys.argv[-1])
print('[' + {FINDING!r} % path + ']')
sys.exit(2)
"""


def stub_environment(folder: Path) -> Path:
    """Make the environment in `folder`; return it."""
    site = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    site.mkdir(parents=True)
    (folder / "bin").mkdir()
    base = Path(getattr(sys, "_base_executable", "") or sys.executable)
    (folder / "pyvenv.cfg").write_text(f"home = {base.resolve().parent}\ninclude-system-site-packages = false\n")
    (folder / "bin" / "python").symlink_to(base)
    for package in ("jinja2", "markupsafe"):
        found = importlib.util.find_spec(package)
        assert found is not None
        assert found.origin is not None
        (site / package).symlink_to(Path(found.origin).parent)
    (site / "ansible_runner.py").write_text(RUNNER)
    for name, text in (("ansible-playbook", PLAYBOOK), ("ansible-lint", LINT)):
        program = folder / "bin" / name
        program.write_text(f"#!{folder}/bin/python\n{text}")
        program.chmod(0o755)
    (folder / COMPLETE).touch()
    return folder


def stub_in_cache(cache: Path, root: Path) -> Path:
    """Make the environment where `agent skills setup ansible-playbooks` would make it, below the folder `cache`."""
    environments = SkillEnvironments(root, cache, root / "no-state")
    place = environments.place(read_requirements(bundled_skill()))
    return stub_environment(place)


def stub_programs(folder: Path) -> AnsiblePrograms:
    """Return the programs of a stub environment that is made in `folder`."""
    made = stub_environment(folder)
    return AnsiblePrograms(made / "bin" / "python", made, bundled_skill())


def bundled_skill() -> Path:
    """Return the folder of the bundled skill."""
    bundled = bundled_skills()
    assert bundled is not None
    return bundled / SKILL
