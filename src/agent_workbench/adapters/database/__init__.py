"""The PostgreSQL database that machines share. Nothing of it is loaded without the setting `database.url_env`."""

from agent_workbench.core.extras import Extra, require_extra

require_extra(Extra.FLEET)
