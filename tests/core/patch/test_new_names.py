"""Names of new files that the grammar admits."""

from pathlib import Path

from agent_workbench.core.patch.diff_grammar import EditScope, diff_rules
from agent_workbench.core.patch.values import PatchBounds
from tests.core.patch.test_diff_grammar import BOUNDS, check

EXISTING = (
    "README.md",
    ".agent.yml",
    "src/app.py",
    "src/app/x.py",
    "tests/test_app.py",
    "memory/plans/PLAN.yaml",
    "Größe",
)


def new(path: str, body: str = "@@ -0,0 +1 @@\n+x\n") -> str:
    return f"--- /dev/null\n+++ b/{path}\n{body}"


def wanted(*globs: str) -> str:
    bounds = PatchBounds(write_globs=globs, protected_globs=BOUNDS.protected_globs) if globs else BOUNDS
    return "\n".join(["root ::= diff", *diff_rules(EditScope((), EXISTING, bounds)), ""])


def all_new(paths: list[str]) -> list[str]:
    return [new(path) for path in paths]


async def test_a_new_file_lies_beside_others_or_in_one_new_folder(tmp_path: Path) -> None:
    right = ["a", "README", "README.md2", "READM.md", ".editorconfig", ".gitignore", "docs/x.md", "src/appx.py"]
    right += [".env.example", "src/.envrc", "src/.mcp.json5", ".claudes/x", "src/AGENTS.md"]
    right += ["src/app/y.py", "src/new/y.py", "src/.hidden", "tests/test_app2.py", "src/a-b+c@d.py", "src/app.p"]
    wrong = [
        "README.md",
        "readme.MD",
        "src",
        "SRC/x",
        "src/app.py",
        "src/APP.py",
        "src/app",
        "src/App/y.py",
        "src/app/x.py",
    ]
    wrong += [".agent.yml", ".Agent.yml", "memory/x", "memory/plans/x", "skills/x", "Skills/x", ".git", ".git/config"]
    wrong += [".mcp.json", "src/.Mcp.json", "new/.mcp.json", ".env", "src/.env", "src/app/.ENV.local", "new/.env"]
    wrong += [".claude/x", "src/.claude/x", ".Agents/x", "src/app/.agents/x", "new/.claude/x"]
    wrong += [
        "",
        "/x",
        "../x",
        "a/../b",
        "a//b",
        "a/",
        "a.",
        "..",
        "a..b",
        "x/y/z",
        "-x",
        "x y",
        "src/new/.git",
        "a\\b",
    ]
    await check(tmp_path, wanted(), all_new(right), all_new(wrong))


async def test_a_new_file_lies_where_the_task_may_write(tmp_path: Path) -> None:
    right = ["src/a.py", "src/new/a.py", "src/app/a.py", "docs/new/x", "tests/test_b.py", "one.txt"]
    wrong = [
        "a.py",
        "src/a.txt",
        "src/new/a.txt",
        "tests/b.py",
        "docs/x",
        "tests/sub/test_b.py",
        "two.txt",
        "src/app.py",
    ]
    grammar = wanted("src/**/*.py", "docs/new/**", "tests/test_*.py", "one.txt", "README.md")
    await check(tmp_path, grammar, all_new(right), all_new(wrong))


async def test_a_new_file_may_be_empty_and_its_last_line_open(tmp_path: Path) -> None:
    right = [new("a", ""), new("a", "@@ -0,0 +1,2 @@\n+\n+x\n\\ No newline at end of file\n"), new("a") + new("src/b")]
    wrong = [new("a", "@@ -0,0 +1 @@\n"), new("a", "+x\n"), new("a", "@@ -0,0 +1 @@\n x\n"), new("a") + new("b")]
    wrong += [new("a", "@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n+y\n"), new("a", "@@ -0,0 +1 @@\n+++ x\n")]
    wrong += [new("a", "@@ -0,0 +1 @@\n+\n\\ No newline at end of file\n")]
    await check(tmp_path, wanted(), right, wrong)
