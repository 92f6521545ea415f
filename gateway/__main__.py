"""`python -m gateway --fd N --grace SECONDS`: the web server on an inherited socket."""

import argparse

from gateway.server import run

parser = argparse.ArgumentParser(prog="python -m gateway", description="Serve the console.")
parser.add_argument("--fd", type=int, required=True, help="the listening socket to serve")
parser.add_argument(
    "--grace", type=int, required=True, help="seconds that answers under way have at the end"
)

if __name__ == "__main__":
    given = parser.parse_args()
    run(given.fd, grace_s=given.grace)
