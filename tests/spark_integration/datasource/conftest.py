"""What travels to executors needs what Spark brings; without that, this folder is left out."""

from importlib.util import find_spec

from tests.extras import requires

# An error where it could have been installed: in CI as root.
requires("spark")
collect_ignore_glob = (
    [] if all(find_spec(name) for name in ("numpy", "pyarrow", "pyspark")) else ["*"]
)
