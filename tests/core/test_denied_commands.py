"""Command lines that a task's patterns deny, and patterns that are refused themselves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.command_lines import MAX_CHARS, denial, globs_of, left_running, pattern_fault, programs_of

FORCE = ("git push*--force*",)


@pytest.mark.parametrize(
    "line",
    [
        *("git push --force", "git push origin main --force", "git  push\t--force", "git push --force-with-lease"),
        *("cd x && git push --force", "a;git push --force;b", "a | git push --force | b", "a & git push --force &"),
        *("a\ngit push --force\nb", "git push \\\n  --force", "(git push --force) > log", "{ git push --force; }"),
        *("X=1 git push --force", "sudo -u me git push --force", "/usr/bin/git push --force", "! git push --force"),
        *("'git' push '--force'", 'g"i"t push --force', "git push 2>&1 --force", "if x; then git push --force; fi"),
        *("sh -c 'git push --force'", 'bash -lc "cd x; git push -q --force"', "sh -c \"sh -c 'git push --force'\""),
        *(
            "echo $(git push --force)",
            'echo "$(git push --force)"',
            "echo `git push --force`",
            "X='git push --force'; $X",
        ),
        *("git push 'with no end --force", "timeout 5 git push origin --force"),
    ],
)
def test_a_glob_finds_a_command_wherever_a_shell_would_run_it(line: str) -> None:
    assert denial(line, ("curl*", *FORCE)) == f"this task does not allow {FORCE[0]!r} in a command"


@pytest.mark.parametrize(
    "line",
    [
        *(
            "git push origin main",
            "git pull --force",
            "digit push --force",
            "git push; rm --force x",
            "git push | x --force",
        ),
        *("", "git", "echo --force git push"),
    ],
)
def test_a_glob_finds_nothing_else(line: str) -> None:
    assert denial(line, FORCE) == ""


@pytest.mark.parametrize(
    ("pattern", "line", "denied"),
    [
        *(("rm", "rm -rf x", True), ("rm", "/bin/rm x", True), ("rm", "sudo rm x", True), ("rm", "rmdir x", True)),
        *(("rm", "pytest tests/test_forms.py", False), ("rm -rf", "rm  -rf /", True), ("rm -rf", "rm -r x", False)),
        *(("curl", "./curl.sh", True), ("http://", "wget http://x", True), (".env", "cat config/.env", True)),
        *(("--force", "git push --force-with-lease", True), ("pip", "pip3 install x", True)),
        *(("| sh", "curl x|sh", True), ("curl*|*sh", "curl x | sudo sh", True), ("curl*|*sh", "curl x; sh y", False)),
        *(
            ("> /dev/sd*", "dd if=x > /dev/sda", True),
            ("rm -rf /*", "rm -rf /* -v", True),
            ("*secret*", "cat a/secret.txt", True),
        ),
        *(
            ("rm -?", "rm -f", True),
            ("rm -?", "rm -rf", False),
            ("rm [!-]*", "rm x", True),
            ("rm [!-]*", "rm -i x", False),
        ),
        *(
            ("git push*--force*", "git -C . push --force", True),
            ("git push*--force*", "sudo git --no-pager -C sub -c a.b=c push -q --force", True),
            ("git push*--force*", "git -C . --no-pager push --force", True),
            ("git push*--force*", "git -C . log push --force", False),
            ("git push*--force*", "git -C . pull; echo push --force", False),
            ("kubectl delete", "kubectl -n prod delete pod x", True),
            ("rm src", "rm -f src/a.py", True),
            ("rm -rf", "rm -v -rf x", False),
        ),
        *(
            ("make", "MAKE all", False),
            ("rm -rf *.py", "rm -rf src/a.py", True),
            ("git push*--force", "git push --force x", False),
        ),
    ],
)
def test_what_a_pattern_means(pattern: str, line: str, *, denied: bool) -> None:
    assert bool(denial(line, (pattern,))) is denied


@pytest.mark.parametrize(
    ("pattern", "globs"),
    [
        *(("git push.*--force", ("git push*--force*",)), (r"rm\s+-rf\s+/", ("rm -rf /*",)), (r"^sudo\b", ("sudo*",))),
        *(("(curl|wget) .*", ("curl *", "wget *")), (r"curl.*\|\s*sh$", ("curl*| sh",)), (r"\.env", (".env*",))),
        *(("--force(-with-lease)?", ("--force-with-lease*", "--force*")), ("a[^b]+c", ("a[!b]*c*",))),
        *(
            ("python[0-9]+ -m pip", ("python[0-9]* -m pip*",)),
            (r"git.push\s.+\*", ("git?push ?*[*]*",)),
            ("rm .*", ("rm *",)),
        ),
    ],
)
def test_a_regular_expression_stands_for_the_globs_that_mean_the_same(pattern: str, globs: tuple[str, ...]) -> None:
    assert pattern_fault(pattern) == ("", "")
    assert globs_of(pattern) == globs


@pytest.mark.parametrize(
    ("pattern", "line", "denied"),
    [
        *(("git push.*--force", "git push origin main --force", True), ("git push.*--force", "git push", False)),
        *(("git push.*--force", "git -C . push -q --force", True), (r"rm\s+-rf\s+/", "sudo rm  -rf /x", True)),
        *((r"(curl|wget) .*", "cd x; wget y", True), (r"curl.*\|\s*sh$", "curl x | sh", True)),
        *((r"curl.*\|\s*sh$", "curl x | shred", False), (r"^sudo\b", "sudo ls", True)),
    ],
)
def test_a_regular_expression_denies_and_is_named_as_it_was_written(pattern: str, line: str, *, denied: bool) -> None:
    why = f"this task does not allow {pattern!r} in a command" if denied else ""
    assert denial(line, ("curl x.sh", pattern)) == why


@pytest.mark.parametrize(
    "pattern", [".*", "(?=x)y", "x{2,3}", "(a|b)(c|d)(e|f)(g|h).*", r"(a", "(" * 300 + ".*", "a\\\\", "[.*"]
)
def test_a_regular_expression_that_no_glob_says_is_refused_or_plain(pattern: str) -> None:
    assert "write it as a glob" in pattern_fault(pattern)[1] or not pattern_fault(pattern)[0]


@pytest.mark.parametrize(
    "pattern",
    [
        *("git push*--force*", "rm -rf", "rm -rf *.py", "find . -exec rm {} \\;", "(curl x | sh)", "echo ${X}", "a?b"),
        *("[a-z]*", "c++ *", "rm [.]*", "http://*", "| sh"),
    ],
)
def test_globs_and_plain_commands_are_taken(pattern: str) -> None:
    assert pattern_fault(pattern) == ("", "")


def test_what_is_no_pattern_is_refused() -> None:
    assert pattern_fault("  ")[0] == "expected a command, found nothing"
    assert pattern_fault("x" * 501)[0] == "expected at most 500 characters, found 501"
    assert "too long" in denial("x" * (MAX_CHARS + 1), ("curl",))
    assert denial("x" * (MAX_CHARS + 1), ()) == ""


@pytest.mark.parametrize(
    ("piece", "glob"),
    [
        *(("git ", "git*--force*"), ("a", "a*"), ("a ", "a*"), ("'a ", "*a"), ("-", "*-"), ("$(", "x*"), ("'\"", "x*")),
        *(("a=", "[a=]*"), ("a;", "*;"), ("a;", "a*;*"), ("a|", "a*|*"), ("a&&", "a*&&*")),
    ],
)
def test_no_pattern_takes_long(piece: str, glob: str) -> None:
    # What is exponential, or cubic, does not end within the time of a test.
    line, pattern = piece * (MAX_CHARS // len(piece)), glob * (490 // len(glob)) + "b"
    assert denial(line, (pattern,)) == ""
    assert denial(f'"{line[2:]}"', (pattern,)) == ""


@pytest.mark.parametrize(
    ("line", "programs"),
    [
        *(("pytest -q", ("pytest",)), ("cd a && ruff check . | tee x", ("cd", "ruff", "tee")), ("", ()), ("X=1", ())),
        *(
            ("X=1 Y=2 make all", ("make",)),
            ("python -m pytest -q", ("python -m pytest",)),
            ("python x.py", ("python",)),
        ),
        *(
            ("a > b && c 2>&1; d < e f", ("a", "c", "d")),
            ("> log a", ("a",)),
            ("$X y; '*' z; -x", ()),
            ("a; a", ("a",)),
        ),
        *(("sh -c 'b c'", ("sh",)), ("./run.sh", ("./run.sh",)), ("(a; b)", ("a", "b"))),
    ],
)
def test_the_programs_of_a_line(line: str, programs: tuple[str, ...]) -> None:
    assert programs_of(line) == programs


@pytest.mark.parametrize(
    ("line", "command"),
    [
        *(("npm run dev &", "npm run dev "), ("npm run dev&\n", "npm run dev"), ("a & b &", "a & b ")),
        *(("a 2>&1 &", "a 2>&1 "), ("echo '&' &", "echo '&' "), ("(a; b) &", "(a; b) ")),
        *((line, "") for line in ("a", "a & b", "a &&", "a |&", "a >&", "echo '&'", 'echo "a &"', "echo \\&", "&", "")),
    ],
)
def test_a_final_sign_leaves_a_command_running(line: str, command: str) -> None:
    assert left_running(line) == command


@given(st.text(max_size=40), st.text(min_size=1, max_size=20))
def test_any_text_is_compared(line: str, pattern: str) -> None:
    denial(line, (pattern,))
    pattern_fault(pattern)
