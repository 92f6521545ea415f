"""Django's SQLite backend with a fair queue of writers. Named as ENGINE in the settings."""
