"""Django's SQLite backend with a fair queue of writers. The ENGINE in the settings."""
