"""`python -m gateway`: runs a web server or a gateway, on an inherited or a new socket."""

import argparse
from pathlib import Path

from gateway.server import Serving, bound, run

# The time that a supervisor grants.
GRACE_SECONDS = 3

parser = argparse.ArgumentParser(
    prog="python -m gateway", description="Serve the console, or programs by REST and WebSocket."
)
where = parser.add_mutually_exclusive_group(required=True)
where.add_argument("--fd", type=int, help="the listening socket to serve")
where.add_argument("--listen", metavar="HOST:PORT", help="an address to serve; port 0: any")
parser.add_argument(
    "--grace",
    type=int,
    default=GRACE_SECONDS,
    help="seconds for pending answers when the process stops",
)
parser.add_argument(
    "--door", choices=("web", "rest"), default="web", help="the clients: browsers, or programs"
)
parser.add_argument("--worker", default="web", metavar="NAME", help="the name of this process")
parser.add_argument(
    "--connect-fd", type=int, help="a second listening socket, for Kafka Connect's REST"
)
parser.add_argument(
    "--connect-listen", metavar="HOST:PORT", help="a second address, for Kafka Connect's REST"
)
parser.add_argument(
    "--socket",
    type=Path,
    metavar="PATH",
    help="a unix socket, for the other processes of this home",
)
parser.add_argument("--cert", type=Path, metavar="FILE", help="serve TLS with this certificate")
parser.add_argument("--key", type=Path, metavar="FILE", help="its private key")
parser.add_argument(
    "--insecure", action="store_true", help="listen beyond this machine without TLS or a proxy"
)


def connect_socket(given: argparse.Namespace) -> int | None:
    """Return the second socket, inherited or opened now; None if there is none."""
    return bound(given.connect_listen) if given.connect_listen else given.connect_fd


if __name__ == "__main__":
    given = parser.parse_args()
    run(
        Serving(
            descriptor=bound(given.listen) if given.fd is None else given.fd,
            grace_s=given.grace,
            connect_descriptor=connect_socket(given),
            door=given.door,
            worker=given.worker,
            own_socket=given.socket,
            certificate=given.cert,
            key=given.key,
            is_insecure=given.insecure,
        )
    )
