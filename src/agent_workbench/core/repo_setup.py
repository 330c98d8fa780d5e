"""Set-up of a repository for the workbench: what would be written, and what was found for it."""

import textwrap
from collections.abc import Iterator, Sequence

from msgspec import Struct

from agent_workbench.core.local_models import NOTHING_FOUND, PULL_ADVICE, FoundModels, ModelChoice
from agent_workbench.core.repo.project_commands import DetectedProject, ProjectCommand, joined

_SHOWN_FILES = 3
_SHOWN_ABSENT = 2
_COLUMNS, _LABEL_COLUMNS = 70, 8
_SHOWN_MODELS = 4


class SetupProposal(Struct, frozen=True):
    """Files that would be written in a repository, the commands for them, and the models of this machine.

    `models` is None where one is configured. `own_file` is the user's settings file, which the choice of a model is
    written to. `named_url` is the address that the user named for this start; `models` are those of its server.
    """

    files: tuple[str, ...] = ()
    project: DetectedProject = DetectedProject()
    models: FoundModels | None = None
    own_file: str = ""
    named_url: str = ""

    @property
    def choice(self) -> ModelChoice | None:
        """The best model that was found, None if one is configured or none can be used."""
        return next(iter(self.models.choices), None) if self.models is not None else None

    @property
    def is_question(self) -> bool:
        """True if there is something to agree to. Whoever names a server for one start is not asked to keep it."""
        return bool(self.files) or (self.choice is not None and not self.named_url)


def proposal_lines(proposal: SetupProposal) -> tuple[str, ...]:
    """Return the lines of the question whether to write what is proposed."""
    lines = [*model_lines(proposal)]
    if proposal.files:
        lines += project_lines(proposal.project)
        rest = len(proposal.files) - _SHOWN_FILES
        more = f" and {rest} more" if rest > 0 else ""
        lines.append(labelled("writes", f"{', '.join(proposal.files[:_SHOWN_FILES])}{more}; changes no file"))
    return tuple(part for line in lines for part in _wrapped(line))


def _wrapped(line: str) -> list[str]:
    """Return a line wrapped for a dialog; the further lines begin below its text."""
    return textwrap.wrap(
        line,
        _COLUMNS,
        subsequent_indent=" " * _LABEL_COLUMNS,
        drop_whitespace=True,
        break_on_hyphens=False,
        replace_whitespace=False,
    )


def model_lines(proposal: SetupProposal) -> Iterator[str]:
    """Yield lines about the model that is proposed, and others that could be used."""
    if proposal.models is None:
        return
    if proposal.choice is None and proposal.named_url:
        found = [*proposal.models.lines()] or [f"no model server answers at {proposal.named_url}"]
        yield from (labelled("model", line) for line in found)
        return
    if proposal.choice is None:
        yield labelled("model", NOTHING_FOUND)
        yield from (labelled("", line) for line in proposal.models.lines())
        yield labelled("", PULL_ADVICE)
        return
    yield labelled("model", proposal.choice.label)
    # A dialog of 24 lines has room for the one that matters most; `agent init` prints all.
    yield from (labelled("", reason) for reason in proposal.choice.reasons[:1])
    yield labelled("", f"for all your repos, in {proposal.own_file}")
    if others := [each.label for each in proposal.models.choices[1:]]:
        shown = "; ".join(each.partition(",")[0] for each in others[:_SHOWN_MODELS])
        yield labelled("", f"`agent init` takes another: {shown}{' …' if len(others) > _SHOWN_MODELS else ''}")


def project_lines(project: DetectedProject) -> Iterator[str]:
    """Yield lines about the tests, the linter, and what is linked into the workspaces."""
    yield from command_lines("tests", project.tests)
    yield from command_lines("lint", project.lint)
    if project.link:
        rest = len(project.link) - _SHOWN_FILES
        more = f" and {rest} more" if rest > 0 else ""
        yield labelled("links", f"{', '.join(project.link[:_SHOWN_FILES])}{more} into the workspace of each task")


def command_lines(label: str, commands: Sequence[ProjectCommand]) -> Iterator[str]:
    """Yield a line about the command that is written, and one for each that would not start."""
    named = ", ".join(dict.fromkeys(each.source for each in commands if not each.missing))
    yield labelled(label, f"{joined(commands)}   ({named})" if named else "none was found that starts")
    absent = [each for each in commands if each.missing]
    for each in absent[:_SHOWN_ABSENT]:
        yield labelled("", f"left out: {each.from_root}, because {each.missing} is not installed ({each.source})")
    if len(absent) > _SHOWN_ABSENT:
        yield labelled("", f"left out: {len(absent) - _SHOWN_ABSENT} more")


def labelled(label: str, text: str) -> str:
    """Return a line with its label in a column."""
    return f"{label:<{_LABEL_COLUMNS}}{text}".rstrip()
