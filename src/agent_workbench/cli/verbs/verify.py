"""`agent verify`: proof of one commit, and the output of proofs."""

import argparse
import asyncio
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import to_builtins

from agent_workbench.cli.output import say, say_json
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.session_request import Invocation

if TYPE_CHECKING:
    from agent_workbench.core.history.journal_proof import Proof


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the flags of the verb, and the function that runs it."""
    verb.set_defaults(execute=execute)
    verb.add_argument("commit", metavar="COMMIT", help="a commit of a task: its hash, or a branch such as agent/T-1")
    verb.add_argument("--json", action="store_true", help="print the proof as JSON")


def execute(options: argparse.Namespace) -> int:
    """Print the proof; exit with 6 if something differs, with 1 if there is no anchor."""
    from agent_workbench.api.proofs import prove_commit
    from agent_workbench.views.reports.proofs import commit_proof_lines, commit_summary

    proof = asyncio.run(prove_commit(Invocation(Path.cwd(), os.environ, {}), options.commit))
    if options.json:
        facts = {"commit": proof.facts.commit, "tree": proof.facts.tree, "parents": proof.facts.parents}
        trailers = [{"proof": each.proof, **to_builtins(each)} for each in proof.trailers]
        rest = {"problems": proof.problems, "missing": proof.missing, "trailers": trailers}
        say_json({"proof": proof.proof, **facts, "author": proof.facts.author, **rest})
        return exit_code(proof.proof)
    return say_proof(proof.proof, commit_summary(proof), commit_proof_lines(proof))


def say_proof(proof: "Proof", summary: str, lines: Iterable[str]) -> int:
    """Print an outcome with its lines, to standard error unless it is green; return the exit code."""
    from agent_workbench.views.reports.proofs import WORDS

    code = exit_code(proof)
    to = None if code == ExitCode.DONE else sys.stderr
    say(f"{WORDS[proof]:<6} {summary}", to=to)
    for line in lines:
        say(f"       {line}", to=to)
    return code


def exit_code(proof: "Proof") -> int:
    """Return the exit code of an outcome."""
    from agent_workbench.core.history.journal_proof import Proof

    codes = {Proof.GREEN: ExitCode.DONE, Proof.RED: ExitCode.JOURNAL, Proof.UNPROVABLE: ExitCode.FAILED}
    return codes[proof]
