"""Commands that this app adds to manage.py, one module each."""
