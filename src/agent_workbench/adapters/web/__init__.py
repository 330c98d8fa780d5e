"""Web server for the workbench in a browser of this machine."""

from agent_workbench.core.extras import Extra, require_extra

require_extra(Extra.WEB)
