"""`manage.py` commands of the access rights, one to a file."""
