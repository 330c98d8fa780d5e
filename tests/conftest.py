"""What holds for every test: blocking calls are found, and in CI nothing is skipped silently."""

import gc
import os
import shutil
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import settings

from tests.sandbox import NO_SANDBOX, bwrap_works, needs_sandbox, sandbox_works, with_sandbox

pytest_plugins = ["tests.postgres"]
__all__ = ["bwrap_works", "needs_sandbox"]

# A skip may stand in CI only if the machine cannot do better; it says so with this beginning.
MACHINE_LACKS = "machine lacks:"
MOST_ID_CHARS = 100
# Programs without which tests are skipped, and the Debian package that has each.
PROGRAMS = {
    "kubectl": "kubernetes-client",
    "make": "make",
    "patch": "patch",
    "setpriv": "util-linux",
    "systemd-analyze": "systemd",
    "tmux": "tmux",
    "unshare": "util-linux",
}

# No deadline for a single example: the machine may be busy, and every test has its timeout. Few examples: there are
# many properties, and each run tries others.
settings.register_profile("workbench", deadline=None, print_blob=True, max_examples=30)
settings.load_profile("workbench")


@pytest.fixture(autouse=True)
def blockbuster() -> Iterator[BlockBuster]:
    """Fail a test in which our code blocks the event loop.

    Scoped to our package: without the scope Textual's own reading of style sheets would fail.
    """
    with blockbuster_ctx("agent_workbench") as active:
        # A crash of the app is printed with lines of its sources: without this the printing hides the crash.
        active.functions["os.stat"].can_block_in("rich/traceback.py", {"_render_stack"})
        yield active


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Do not look for garbage among some million objects that live as long as the tests do; later, look less often."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        gc.enable()


def pytest_configure() -> None:
    """Let the tests find the sandbox of the dev group where the machine has none; it stands last on PATH."""
    os.environ["PATH"] = with_sandbox(os.environ.get("PATH", os.defpath))


def pytest_report_header() -> list[str]:
    """Say before the first test what this machine lacks, with the command that installs it."""
    lacking = [name for name in PROGRAMS if shutil.which(name) is None]
    packages = " ".join(sorted({PROGRAMS[name] for name in lacking}))
    said = [f"{MACHINE_LACKS} {', '.join(lacking)}; their tests are skipped (apt-get install {packages})"]
    return [*(said if lacking else []), *([] if sandbox_works() else [NO_SANDBOX])]


def pytest_make_parametrize_id(val: object) -> str | None:
    """Cut long texts in the ids of tests: workers exchange all ids, and the environment of each test holds its own."""
    if not isinstance(val, str | bytes) or len(val) <= MOST_ID_CHARS:
        return None
    return f"{val[:MOST_ID_CHARS]!r}... of {len(val)}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bring what each worker found in an order of its own into the order that all must have, and free quick cases."""
    items.sort(key=lambda item: item.path)
    _free_quick_cases(items)


def _free_quick_cases(items: list[pytest.Item]) -> None:
    """Take the mark `slow(quick=N)` from the first N cases of a test."""
    cases: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("slow")
        test = item.nodeid.partition("[")[0]
        cases[test] += 1
        if mark is not None and cases[test] <= mark.kwargs.get("quick", 0):
            item.own_markers.remove(mark)


def _beginning_elsewhere(found: list[pytest.Item | pytest.Collector]) -> list[pytest.Item | pytest.Collector]:
    """Return what is in a folder, in another order in each worker: what one has compiled is ready for the others."""
    worker, workers = os.environ.get("PYTEST_XDIST_WORKER", "gw0"), os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")
    start = len(found) * int(worker.removeprefix("gw")) // int(workers)
    return found[start:] + found[:start]


def _in_ci() -> bool:
    return os.environ.get("CI", "").lower() not in {"", "0", "false"}


def _skip_reason(longrepr: object) -> str:
    """Return the reason of a skip as its author wrote it; pytest keeps it as (path, line, "Skipped: reason")."""
    text = str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)
    return text.removeprefix("Skipped: ")


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not (_in_ci() and report.outcome == "skipped") or hasattr(report, "wasxfail"):
        return
    reason = _skip_reason(report.longrepr)
    if reason.startswith(MACHINE_LACKS):
        return
    report.outcome = "failed"
    report.longrepr = (
        f"skipped in CI: {reason}\nRun it, or begin the reason with {MACHINE_LACKS!r} if it cannot be run."
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what others wrote to judge us, unless it is asked for by its folder: it fetches packages."""
    asked = any("judges" in argument for argument in config.args)
    return True if collection_path.name == "judges" and not asked else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI, count a skipped test as failed."""
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """In CI, count a module that skips itself as failed; have workers share the work on a folder's modules."""
    report = yield
    _refuse_skip(report)
    if isinstance(collector, pytest.Directory) and report.result:
        report.result = _beginning_elsewhere(report.result)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly what this machine could not test, and how many tests each thing that it lacks took away."""
    reasons = Counter(_skip_reason(report.longrepr) for report in terminalreporter.stats.get("skipped", []))
    lacking = {reason: count for reason, count in reasons.items() if reason.startswith(MACHINE_LACKS)}
    if lacking:
        terminalreporter.section("NOT TESTED ON THIS MACHINE", sep="!", yellow=True, bold=True)
        for reason, count in lacking.items():
            tests = "1 test" if count == 1 else f"{count} tests"
            terminalreporter.write_line(f"{tests}: {reason}", yellow=True)
