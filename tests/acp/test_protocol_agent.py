"""Threads of one repository share its host, wherever in it the client begins them."""

from pathlib import Path
from typing import cast

import pytest
from acp import RequestError
from acp import schema as wire

from agent_workbench.acp.editor import Editor, Update
from agent_workbench.acp.protocol_agent import ProtocolAgent
from agent_workbench.core.session_request import Invocation
from tests.adapters.git.user import copy_repo


class _Window:
    """An editor that is shown nothing."""

    async def show(self, _: str, *updates: Update) -> None:
        pass


@pytest.mark.parametrize(
    ("client", "offered"),
    [
        (None, False),
        (wire.ClientCapabilities(), False),
        (wire.ClientCapabilities(auth=wire.AuthCapabilities(terminal=True)), True),
        # The validator of the registry says it so.
        (wire.ClientCapabilities.model_validate({"_meta": {"terminal-auth": True}}), True),
        (wire.ClientCapabilities.model_validate({"_meta": {"terminal-auth": "yes"}}), False),
    ],
)
async def test_a_client_with_a_terminal_can_set_the_agent_up(
    client: wire.ClientCapabilities | None, offered: bool
) -> None:
    agent = ProtocolAgent(Invocation(Path("/"), {}, {}), cast("Editor", _Window()))
    answer = await agent.initialize(1, client)
    said = answer.model_dump(by_alias=True, exclude_none=True)
    prompts = said["agentCapabilities"]["promptCapabilities"]
    assert prompts == {"image": False, "audio": False, "embeddedContext": True}
    methods = [(each["type"], each["id"], each["args"]) for each in said["authMethods"]]
    assert methods == ([("terminal", "model", ["--setup"])] if offered else [])


async def test_folders_of_a_repository_have_one_host(tmp_path: Path) -> None:
    git_repo = tmp_path / "repo"
    copy_repo(git_repo, {"a.py": ""})
    below, link = git_repo / "below", git_repo.with_name("link")
    below.mkdir()
    link.symlink_to(git_repo)
    agent = ProtocolAgent(Invocation(Path("/"), {}, {}), cast("Editor", _Window()))
    await agent.initialize(1)
    for cwd in (below, git_repo, link, git_repo / "below" / ".." / "below"):
        await agent.new_session(str(cwd))
    assert [thread.roots for thread in agent._threads.values()][2] == (str(git_repo), str(link))
    below.rmdir()  # the folder of the first thread: the others do not need it
    await agent.new_session(str(git_repo))
    hosts = {id(thread.host) for thread in agent._threads.values()}
    assert len(hosts) == len(agent._hosts) == 1
    with pytest.raises(RequestError, match="no absolute path"):
        await agent.new_session("below")
    await agent.close()
