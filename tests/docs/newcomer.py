"""Home of a newcomer: git, the command `agent`, and a model that gives prepared answers."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from scripts.tiny_model import write_tiny_gguf
from tests.architecture.source_tree import ROOT
from tests.docs.pages import Shell, scenes
from tests.e2e.machine import LAUNCHER
from tests.sandbox import USUAL_PATH

GIT_CONFIG = "[user]\n\tname = Mia\n\temail = mia@example.org\n[init]\n\tdefaultBranch = main\n"
TUTORIAL = ROOT / "docs/tutorial.md"
NIGHT = ROOT / "docs/how-to/night-runs.md"

READ = """\
Thought: The failing test is about punctuation, so I look at the function first.
Action: read_file
{"path": "slug.py"}"""
WITH_RE = '''\
Thought: Only letters and digits may stay; everything between them becomes one hyphen.
Action: write_diff
--- a/slug.py
+++ b/slug.py
@@ -1,6 +1,8 @@
 """Titles as parts of addresses."""

+import re
+

 def slug(title: str) -> str:
     """Return a title in small letters, its words joined by hyphens."""
-    return title.lower().replace(" ", "-")
+    return "-".join(re.findall(r"[a-z0-9]+", title.lower()))
'''
WITHOUT_RE = '''\
Thought: Without a module: all other characters become spaces, and the words are joined.
Action: write_diff
--- a/slug.py
+++ b/slug.py
@@ -3,4 +3,5 @@

 def slug(title: str) -> str:
     """Return a title in small letters, its words joined by hyphens."""
-    return title.lower().replace(" ", "-")
+    kept = "".join(each if each.isalnum() else " " for each in title.lower())
+    return "-".join(kept.split())
'''
FINISH = """\
Thought: All tests pass now.
Action: finish
{"summary": "slug() keeps letters and digits only, so punctuation leaves no trace."}"""
ANSWERS = [READ, WITH_RE, FINISH]
SCRIPTS = {"T-1": ANSWERS, "T-1:1": [WITHOUT_RE], "leave-punctuation-out-of-slug-py": ANSWERS}
# Verbs that ask no model run as they are: the launcher takes a moment more to start.
COMMAND = """\
#!/bin/sh
export PYTHONPATH={root}
case "$1 $2" in
  "tui "*|"replay "*|"worker --once") exec {python} -P {launch} "$@" ;;
  *) exec {python} -P -m agent_workbench "$@" ;;
esac
"""


def move_in(home: Path) -> dict[str, str]:
    """Make the home of somebody who has installed the command and has a model; return their environment."""
    (home / "models").mkdir(parents=True)
    (home / "bin").mkdir()
    write_tiny_gguf(home / "models/coder.gguf")
    (home / ".gitconfig").write_text(GIT_CONFIG)
    plan = home / "bin/answers.json"
    plan.write_text(json.dumps({"scripts": SCRIPTS, "halt": "", "mark": str(home / "bin/mark")}))
    program = home / "bin/agent"
    program.write_text(
        COMMAND.format(
            root=shlex.quote(str(ROOT)),
            python=shlex.quote(sys.executable),
            launch=shlex.join([str(LAUNCHER), str(plan)]),
        )
    )
    program.chmod(0o755)
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return {**kept, "HOME": str(home), "PATH": f"{home}/bin:{USUAL_PATH}", "LANG": "C.UTF-8"}


def set_up(home: Path, environment: dict[str, str]) -> Path:
    """Do what the tutorial says until the repository is set up and the tour was seen; return the repository."""
    parts = [scene.part for scene in scenes(TUTORIAL)]
    lines = "".join(part.body for part in parts[:3] if isinstance(part, Shell))
    lines = "".join(line for line in lines.splitlines(keepends=True) if not line.startswith("agent doctor"))
    subprocess.run(["/bin/sh", "-e"], input=lines, text=True, cwd=home, env=environment, check=True, timeout=60)
    seen = home / ".local/state/agent-workbench/welcomed"
    seen.parent.mkdir(parents=True, exist_ok=True)
    seen.touch()
    return home / "slugs"
