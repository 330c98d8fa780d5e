"""`agent knowledge`: search, list, add and edit the notes that outlive a task."""

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import to_builtins

from agent_workbench.cli.options import add_verb, whole_number
from agent_workbench.cli.output import say, say_aside, say_json
from agent_workbench.core.errors import ExitCode, UsageError
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line

if TYPE_CHECKING:
    from agent_workbench.subjects.knowledge.calls import ListedNote

MAX_INPUT_CHARS = 1_000_000
SEARCH_EXIT = "exit code: 0 a note was found; 1 none fits"


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the verbs below it with their flags, and the function that each of them runs."""
    verb.set_defaults(execute=list_all, stats=False, json=False)
    below = verb.add_subparsers(title="verbs", metavar="VERB")
    found = add_verb(below, "search", "search the notes as a task does, with the reasons for each", search)
    found.epilog = SEARCH_EXIT
    found.add_argument("words", nargs="+", metavar="WORDS", help="what the notes are about")
    found.add_argument("--limit", type=whole_number(), default=5, metavar="N", help="number of notes (5)")
    listed = add_verb(below, "list", "list all notes", list_all)
    listed.add_argument("--stats", action="store_true", help="which tasks had each note, and how they ended")
    added = add_verb(below, "add", "write a new note; an existing one is never replaced", add)
    added.add_argument("title", help="its title; the name of its file is made from it")
    added.add_argument("--text", metavar="TEXT", help="its text; `-`: standard input; without it your editor opens")
    added.add_argument("--name", default="", metavar="NAME", help="another name for its file")
    added.add_argument("--type", default="", metavar="WORD", help="its type in the front matter, such as concept")
    added.add_argument("--domain", default="", metavar="WORD", help="its domain in the front matter")
    edited = add_verb(below, "edit", "change a note in your editor", edit)
    edited.add_argument("name", help="its name in the list")
    edited.add_argument("--text", metavar="TEXT", help="its whole new text; `-`: standard input")
    for each in (found, listed, added, edited):
        each.add_argument("--json", action="store_true", help="a line of JSON for each")


def search(options: argparse.Namespace) -> int:
    """Print an excerpt of each note that fits, best first."""
    from agent_workbench.subjects.knowledge.calls import search_knowledge
    from agent_workbench.views.code import reasons_of
    from agent_workbench.views.reports.json_documents import note_document

    found = asyncio.run(search_knowledge(_invocation(), " ".join(options.words), options.limit))
    if found.problem:
        say_aside(sanitize_line(found.problem))
    for note in found.notes:
        if options.json:
            say_json(note_document(note))
            continue
        why = ", ".join(
            f"{reason.name} {reason.share:.0%} {' '.join(reason.words)}".rstrip() for reason in reasons_of(note)
        )
        say(f"{note.place}  {sanitize_line(note.symbol)}  ({note.score:.2f}: {why})")
        say("\n".join(f"    {line}" for line in sanitize(note.text).split("\n")))
    if not found.notes and not options.json:
        say("no note fits these words")
    return ExitCode.DONE if found.notes else ExitCode.FAILED


def list_all(options: argparse.Namespace) -> int:
    """Print a line for each note."""
    from agent_workbench.subjects.knowledge.calls import list_notes

    notes = asyncio.run(list_notes(_invocation(), stats=options.stats))
    for note in notes:
        if options.json:
            said = to_builtins(note)
            usage = {**said["usage"], "helped": note.usage.helped} if note.usage is not None else {}
            say_json({key: value for key, value in said.items() if key != "usage"} | usage)
        else:
            say(_line(note))
    if not notes and not options.json:
        say("there are no notes; `agent knowledge add TITLE` writes the first")
    return ExitCode.DONE


def add(options: argparse.Namespace) -> int:
    """Write a new note and print its path."""
    from agent_workbench.subjects.knowledge.calls import add_note

    text = _text(options.text, "")
    path = asyncio.run(
        add_note(_invocation(), options.title, text, name=options.name, type=options.type, domain=options.domain)
    )
    _say_path(path, as_json=options.json)
    return ExitCode.DONE


def edit(options: argparse.Namespace) -> int:
    """Change a note and print its path."""
    from agent_workbench.subjects.knowledge.calls import change_note, read_note

    invocation = _invocation()
    note = asyncio.run(read_note(invocation, options.name))
    text = _text(options.text, note.text)
    if text == note.text:
        say_aside("nothing was changed")
        return ExitCode.DONE
    _say_path(asyncio.run(change_note(invocation, note.name, note.text, text)), as_json=options.json)
    return ExitCode.DONE


def _line(note: "ListedNote") -> str:
    about = " · ".join(filter(None, map(sanitize_line, (note.title, note.type, note.domain))))
    if note.problem:
        return f"{note.path}  cannot be searched: it {note.problem}"
    usage = note.usage
    if usage is None:
        return f"{note.path}  {about}"
    told = (
        f"in {counted_text(usage.used, 'task')}, {usage.done} done, {usage.failed} failed, dropped in {usage.dropped}"
    )
    never = "" if usage.helped else "; never helped"
    return f"{note.path}  {about}  ({told}{never})"


def _say_path(path: str, *, as_json: bool) -> None:
    if as_json:
        say_json({"path": path})
    else:
        say(f"written: {path}")


def _text(said: str | None, before: str) -> str:
    """Return the text that was given, standard input for `-`, or `before` as the user's editor leaves it."""
    if said is None:
        if not sys.stdin.isatty() and not (os.environ.get("VISUAL") or os.environ.get("EDITOR")):
            raise UsageError(
                "there is no terminal for the editor",
                advice="give the text: --text TEXT, or --text - for standard input",
            )
        from agent_workbench.api.screen_services import edit_text

        return asyncio.run(edit_text(before, ".md"))
    return sys.stdin.read(MAX_INPUT_CHARS) if said == "-" else said


def _invocation() -> Invocation:
    return Invocation(Path.cwd(), os.environ, {})
