"""The PostgreSQL database that machines share. Nothing of it is loaded without the setting `database.url_env`."""
