"""Sets up the project for the gateway's tests, before any import that reads its settings."""

from tests.database import project_home

project_home()
