"""The description of the REST interfaces, made from their views and routes."""
