"""What a command left behind: kept if the user approves it, put back if not."""

from agent_workbench.core.proposals import KEEP_CHANGES
from agent_workbench.core.settings import Permission
from agent_workbench.engine.tools.write_diff import WriteDiff

TOOL = WriteDiff(
    name=KEEP_CHANGES, summary="keep what a command changed", kind=Permission.DIFF, raw=True, offered=False
)
