"""Front end for editors: the workbench as an agent of the Agent Client Protocol, a client of the session host."""

from agent_workbench.core.extras import Extra, require_extra

require_extra(Extra.ACP)
