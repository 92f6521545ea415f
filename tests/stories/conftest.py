"""The option that rewrites the answers of stories."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("samsa").addoption(
        "--rewrite-stories",
        action="store_true",
        help="write the present answers into the stories; read the difference before you commit it",
    )
