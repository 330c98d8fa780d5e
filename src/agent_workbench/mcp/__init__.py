"""Front end for clients of the Model Context Protocol: it lists, shows and starts, and never decides."""

from agent_workbench.core.extras import Extra, require_extra

require_extra(Extra.MCP)
