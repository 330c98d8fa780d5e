"""What a skill declares: names and versions are read, what could install or run something else is refused."""

from pathlib import Path

import pytest

from agent_workbench.core.errors import ConfigError
from agent_workbench.subjects.skills.environment_adapter import MAX_REQUIREMENTS, Requirements, read_requirements

SCRIPT = "# /// script\n# requires-python = '>=3.11'\n# dependencies = [\n#   'rich>=13',\n# ]\n# ///\nimport rich\n"
HASH = f"--hash=sha256:{'a' * 64}"


def skill(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_scripts_count_before_requirements_and_these_before_a_project(tmp_path: Path) -> None:
    project = "[project]\nname = 'x'\ndependencies = ['one']\n"
    assert read_requirements(tmp_path) == Requirements()
    assert read_requirements(skill(tmp_path, pyproject_toml=project)) == Requirements(("one",), "pyproject.toml")
    assert read_requirements(skill(tmp_path, requirements_txt="two\n")) == Requirements(("two",), "requirements.txt")
    assert read_requirements(skill(tmp_path, scripts__a_py=SCRIPT)) == Requirements(("rich>=13",), "scripts/a.py")
    other = SCRIPT.replace("rich>=13", "attrs")
    assert read_requirements(skill(tmp_path, scripts__b_py=other)).lines == ("rich>=13", "attrs")


def test_a_list_is_read_as_pip_reads_it(tmp_path: Path) -> None:
    text = f"# comment\n\none>=1  # why\r\ntwo[a,b]==1.0 ; python_version < '4'\nthree==1 \\\n    {HASH}\nfour~=2\\\n.0"
    assert read_requirements(skill(tmp_path, requirements_txt=text)).lines == (
        "one>=1",
        "two[a,b]==1.0 ; python_version < '4'",
        f"three==1 {HASH}",
        "four~=2.0",
    )


@pytest.mark.parametrize(
    "line",
    [
        *("-r other.txt", "--index-url https://example.org", "-e .", "-i https://example.org", "--pre"),
        *("./local", "../outside", "/absolute", "a/b", "x.whl/../y", "file:local", "${HOME}", "~/x", "."),
        *("x @ https://example.org/x.whl", "git+https://example.org/x", "https://example.org/x.whl", "x#egg=y"),
        *("x --global-option=a", "x --config-settings=a=b", f"x {HASH} --pre", "x --hash=md5:aa"),
        *("x; --index-url=https://example.org", "x; python_version<'3' --index-url https://example.org"),
        *("x\x0by", "x\u2028--pre", "x y", "x==1 y==2", "=1", "x=="),
    ],
)
def test_what_would_install_something_else_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigError, match=r"^requirements\.txt:2: .* is not accepted"):
        read_requirements(skill(tmp_path, requirements_txt=f"fine\n{line}\n"))


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("[project]\ndynamic = ['dependencies']\n", "its dependencies are dynamic"),
        ("[project]\ndependencies = ['x @ https://example.org']\n", "is not accepted"),
        ("[project]\ndependencies = 'x'\n", "no list of texts"),
        ("[project]\ndependencies = [1]\n", "no list of texts"),
        ("project = 1\n", "no table"),
        ("a = [", "not TOML"),
        ("a = " + "[" * 100_000, "not TOML"),
    ],
    ids=["dynamic", "address", "text", "number", "table", "TOML", "depth"],
)
def test_a_project_is_never_built(tmp_path: Path, text: str, cause: str) -> None:
    with pytest.raises(ConfigError, match=cause):
        read_requirements(skill(tmp_path, pyproject_toml=text))


def test_bounds(tmp_path: Path) -> None:
    many = "".join(f"a{number}\n" for number in range(MAX_REQUIREMENTS + 1))
    with pytest.raises(ConfigError, match=f"more than {MAX_REQUIREMENTS} packages"):
        read_requirements(skill(tmp_path, requirements_txt=many))
    with pytest.raises(ConfigError, match="the limit is"):
        read_requirements(skill(tmp_path, requirements_txt="#" * 300_000))


def test_a_list_outside_of_the_skill_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("one\n")
    folder = tmp_path / "skill"
    folder.mkdir()
    (folder / "requirements.txt").symlink_to(tmp_path / "secret")
    with pytest.raises(ConfigError, match="outside"):
        read_requirements(folder)
