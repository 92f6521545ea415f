"""The project set up, before any test imports what reads its settings."""

from tests.database import project_home

project_home()
