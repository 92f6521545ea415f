"""Django's door to the commands of the access rights."""
