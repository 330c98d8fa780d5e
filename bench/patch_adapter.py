"""`python bench/patch_adapter.py`: applies diffs given as lines of JSON, as the workbench applies them.

A line `{"id", "patch", "pre": {path: text}}` is answered with `{"id", "post", "repaired", "reason"}`: `post` holds
every file as it is afterwards, null where the diff was refused, and then `reason` says why.
"""

import json
import sys

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.fit import Fit, fit_diff
from agent_workbench.core.patch.patch_reader import read_diff
from agent_workbench.core.patch.values import FileContent, PatchBounds

BOUNDS = PatchBounds(max_bytes=50_000_000, max_files=10_000)
Answer = dict[str, object]


def answer(line: str) -> Answer:
    """Return the answer to one line, whatever it holds."""
    try:
        question = json.loads(line)
    except (ValueError, RecursionError) as error:
        return _refused(None, f"the line is no JSON: {error}")
    if not isinstance(question, dict):
        return _refused(None, "the line is no object")
    name, patch, pre = question.get("id"), question.get("patch"), question.get("pre", {})
    if not isinstance(patch, str):
        return _refused(name, "`patch` is no text")
    if not isinstance(pre, dict) or not all(isinstance(text, str) for text in pre.values()):
        return _refused(name, "`pre` is no object of texts")
    try:
        before = {path: FileContent(text.encode()) for path, text in pre.items()}
        fit = _fit(patch, before)
        after = {**before, **{change.path: change.after for change in fit.changes}}
        post = {path: content.data.decode() for path, content in after.items() if content is not None}
    except PatchError as error:
        return _refused(name, f"{error} ({error.advice})" if error.advice else str(error))
    except UnicodeError as error:
        return _refused(name, f"a text cannot be written as UTF-8: {error}")
    return {"id": name, "post": post, "repaired": list(fit.repairs), "reason": ""}


def _fit(patch: str, before: dict[str, FileContent]) -> Fit:
    diff = read_diff(patch, BOUNDS, before)
    return fit_diff(diff, {path: before.get(path) for path in diff.paths}, before)


def _refused(name: object, reason: str) -> Answer:
    return {"id": name, "post": None, "repaired": [], "reason": reason}


def main() -> int:
    """Answer every line of standard input, in order."""
    for raw in sys.stdin.buffer:
        if raw.strip():
            print(json.dumps(answer(raw.decode(errors="replace"))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
