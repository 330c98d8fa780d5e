"""The question of a first start: bounded lines of a dialog, whatever was found."""

from agent_workbench.core.local_models import FoundFile, FoundModels, FoundServer, ListedModel, ServerOptions
from agent_workbench.core.repo.project_commands import DetectedProject, ProjectCommand
from agent_workbench.core.repo_setup import SetupProposal, proposal_lines

REASONS = ("context 16,384: KV cache 1.5 GB of 9.8 GB free", "threads 4: the physical cores")


def commands(*missing: str) -> tuple[ProjectCommand, ...]:
    return tuple(ProjectCommand("npm test", "package.json", f"packages/{at}", each) for at, each in enumerate(missing))


def test_it_fits_on_a_screen_of_80_by_24() -> None:
    files = tuple(FoundFile(f"/m/{at}.gguf", f"{at}.gguf", at, ServerOptions(reasons=REASONS)) for at in range(30))
    project = DetectedProject(
        tests=commands("", "", *["jest"] * 5), lint=commands(*["eslint"] * 7), link=tuple(map(str, range(99)))
    )
    proposal = SetupProposal((".agent.yml", *map(str, range(5))), project, FoundModels(files=files), "~/settings.yml")
    lines = proposal_lines(proposal)
    assert len(lines) <= 20
    assert "links   0, 1, 2 and 96 more into the workspace of each task" in lines
    assert max(map(len, lines)) <= 70
    assert "model   29.gguf, 1 kB, served by the workbench" in lines
    assert any(REASONS[0] in line for line in lines)
    assert sum("left out: " in line for line in lines) == 6


def test_a_running_server_is_preferred_and_what_cannot_be_used_is_none() -> None:
    server = FoundServer("Ollama", "http://127.0.0.1:1", (ListedModel("a"), ListedModel("b")))
    files = (FoundFile("/m/x.gguf", "x", 9, ServerOptions(fits=False)), FoundFile("/m/y.gguf", "y", 9, left_out="no"))
    found = FoundModels((server,), files)
    assert [choice.name for choice in found.choices] == ["a", "b"]
    assert SetupProposal(models=FoundModels((), files)).choice is None
    assert not SetupProposal(models=FoundModels((), files)).is_question
    assert SetupProposal(models=None).choice is None


def test_a_server_that_the_user_names_is_told_and_nothing_else() -> None:
    server = FoundServer("llama-server", "http://10.0.0.2:1", (ListedModel("a"),))
    named = SetupProposal(models=FoundModels((server,)), own_file="~/settings.yml", named_url=server.url)
    assert not named.is_question
    assert proposal_lines(named)[0] == "model   a, served by llama-server at http://10.0.0.2:1"
    silent = SetupProposal(("x",), models=FoundModels(), named_url=server.url)
    assert "model   no model server answers at http://10.0.0.2:1" in proposal_lines(silent)
    locked = FoundModels((FoundServer("a server", server.url, problem="wants an API key"),))
    lines = proposal_lines(SetupProposal(("x",), models=locked, named_url=server.url))
    assert "model   found   a server at http://10.0.0.2:1: wants an API key" in lines
