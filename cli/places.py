"""A pytest plugin for `./samsa test`: selects the tests if none are named.

Only pytest's own parser can distinguish a file to test from the value of an option. Without this,
it would search the user's current folder.
"""

import pytest

from cli.environment import ROOT


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    if not early_config.known_args_namespace.file_or_dir:
        everything = str(ROOT / "tests")
        # For the conftest files that are read next, and for the parser that runs after them.
        early_config.known_args_namespace.file_or_dir = [everything]
        args.append(everything)
