"""What a workspace lacks, and whether a failure is about it."""

import pytest

from agent_workbench.core.repo.absent_sources import (
    ignored_sources,
    missed_sources,
    missing_packages,
    names_packages,
    unlinked,
)

TRACKED = ("setup.py", "src/pkg/__init__.py", "src/pkg/net/io.py", "web/src/app.ts", "web/style.css", "docs/a.md")
FOLDERS = {"src/pkg/proto": ["a_pb2.py"], "src/data": ["x.csv"], "src/build": ["a.py"], "web/src/gen": ["api.ts"]}


@pytest.mark.parametrize(
    ("ignored", "found"),
    [
        ("src/pkg/_version.py", True),
        ("src/pkg/net/_fast.cpython-311-x86_64-linux-gnu.so", True),
        ("src/pkg/proto/", True),
        ("web/src/gen/", True),
        ("local.py", True),
        # What no setting can hold: it would end the set-up, or begin a line of its own.
        *(("a\x1b]0;b\x07.py", False), ("a\nb.py", False), ("a\udcff.py", False)),
        # Nothing of their kind is tracked beside them.
        *(("web/src/app.js", False), ("docs/conf.py", False), ("other/a.py", False), ("src/a.py", False)),
        *(("src/data/", False), ("web/style.min.css", False), ("src/pkg/__init__.pyc", False)),
        *(("src/build/", False), (".venv/", False), ("src/.cache/", False), ("src/pkg.egg-info/", False)),
    ],
)
def test_ignored_sources_are_those_beside_code_of_their_kind(ignored: str, found: bool) -> None:
    expected = (ignored.rstrip("/"),) if found else ()
    assert ignored_sources(TRACKED, [ignored], lambda folder: FOLDERS.get(folder, [])) == expected


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("src/pkg/_version.py", "E   ModuleNotFoundError: No module named 'pkg._version'"),
        ("src/pkg/_version.py", "ImportError: cannot import name '_version' from 'pkg' (src/pkg/__init__.py)"),
        ("src/pkg/proto", "ModuleNotFoundError: No module named 'pkg.proto'"),
        ("web/src/gen/index.ts", "Error: Cannot find module './gen'"),
        ("web/src/gen/api.ts", 'Error: Failed to resolve import "./gen/api" from "src/app.ts". Does the file exist?'),
        ("src/api.pb.h", "src/a.c:1:10: fatal error: api.pb.h: No such file or directory"),
        ("src/gen.rs", "error[E0583]: file not found for module `gen`"),
        ("vendor/lib", "ModuleNotFoundError: No module named 'lib'"),
    ],
)
def test_a_failure_names_what_is_missing(path: str, line: str) -> None:
    assert missed_sources(f"collected 1 item\n{line}\n1 failed", (path, "src/other.py")) == (path,)


@pytest.mark.parametrize(
    "output",
    [
        "KeyError: _version not found in db",
        "FileNotFoundError: [Errno 2] No such file or directory: '/tmp/_version/x.json'",
        "404 Not Found: /api/_version",
        "fixture '_version' not found",
        "AssertionError: _version is 1",
        "No module named 'my_version'",
        f"{'x' * 9999} No module named '_version'",
        "",
    ],
)
def test_any_other_failure_is_about_the_code(output: str) -> None:
    assert missed_sources(output, ("src/pkg/_version.py",)) == ()


def test_what_is_in_a_linked_folder_is_linked() -> None:
    wanted = ("a", "a/b/", "ab", "c/")
    assert unlinked(wanted, ("a/", "c")) == ("ab",)
    assert unlinked(wanted, ()) == wanted


LISTS = {
    "setup.py": "install_requires=['text-unidecode>=1.3', 'ruamel.yaml', 'slug']",
    "web/package.json": '{"devDependencies": {"tape": "^5", "@vue/test-utils": "2", "tape-spec": "1"}}',
}


@pytest.mark.parametrize(
    ("line", "package", "place"),
    [
        ("E   ModuleNotFoundError: No module named 'text_unidecode'", "text_unidecode", "setup.py"),
        ("ModuleNotFoundError: No module named 'text_unidecode.impl'", "text_unidecode", "setup.py"),
        ("Error: Cannot find module 'tape'", "tape", "web/package.json"),
        ("Error: Cannot find module 'tape/lib/test'", "tape", "web/package.json"),
        ("Failed to resolve import '@vue/test-utils' from 'a.test.js'", "@vue/test-utils", "web/package.json"),
    ],
)
def test_a_package_that_is_listed_and_not_installed_is_found(line: str, package: str, place: str) -> None:
    assert missing_packages(f"1 error\n{line}\n{line}", LISTS, ("slug/__init__.py",)) == {package: place}


@pytest.mark.parametrize(
    "line",
    [
        "No module named 'slug.new'",
        "No module named 'slug'",
        "Cannot find module './tape'",
        "Cannot find module '../text_unidecode'",
        "No module named 'unidecode'",
        "No module named 'yaml'",
        "No module named 'spec'",
        "No module named 'install_require'",
        "text_unidecode failed",
        "ImportError: cannot import name 'text_unidecode' from 'cart'",
    ],
)
def test_code_that_is_not_written_yet_is_no_package(line: str) -> None:
    assert missing_packages(line, LISTS, ("slug/__init__.py",)) == {}


def test_files_that_list_packages() -> None:
    paths = ("pyproject.toml", "web/package.json", "requirements-dev.txt", "requirements/test-requirements.txt")
    assert tuple(filter(names_packages, (*paths, "package-lock.json", "docs/setup.py.md", "src/setup_cfg.py"))) == paths
