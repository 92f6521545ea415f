"""One Java virtual machine for all processes of a run, with Kafka's own client classes in it.

Started on first use, so that only runs that compare with Java pay for it. A process outside of a
run, and one that is to be killed with all it uses, has a machine of its own, which ends with it.
Python calls into it through py4j; nothing is compiled.
"""

import atexit
import importlib.util
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from tests.extras import kafka_jars
from tests.suite.shared import ADDRESS_VARIABLE, ask

# The name of the shared machine among the services of a run.
SERVICE: Final = "java"
STOP_SECONDS: Final = 10
# A small heap that starts fast: tests hold a few messages at a time, in a few processes.
JAVA_OPTIONS = ["-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]


@contextmanager
def running_java() -> Iterator[dict[str, Any]]:
    """Start a machine and tell how to reach it; stop it in the end."""
    port, token, process = launch_gateway(
        jarpath=str(_py4j_jar()),
        classpath=os.pathsep.join(str(jar) for jar in kafka_jars()),
        javaopts=JAVA_OPTIONS,
        die_on_exit=True,  # should this process be killed, the machine goes with it
        enable_auth=True,
        return_proc=True,
    )
    # Told to other processes, as JSON.
    told = {"port": port, "token": token.decode()}
    try:
        yield told
    finally:
        _connected(told).shutdown()
        process.stdin.close()
        process.wait(timeout=STOP_SECONDS)


@cache
def gateway() -> JavaGateway:
    """Return the gateway of this process; `gateway().jvm` is the root of Java's packages."""
    if ADDRESS_VARIABLE in os.environ:
        return _connected(ask(SERVICE))
    own = ExitStack()
    atexit.register(own.close)
    return _connected(own.enter_context(running_java()))


def _connected(told: dict[str, Any]) -> JavaGateway:
    parameters = GatewayParameters(port=told["port"], auth_token=told["token"], auto_convert=True)
    return JavaGateway(gateway_parameters=parameters)


def java_class(name: str) -> Any:
    """Return a Java class by its full name, for its static methods and its constructor."""
    found = gateway().jvm
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _py4j_jar() -> Path:
    """Find the jar that py4j's wheel puts under `share`, wherever the environment lies."""
    spec = importlib.util.find_spec("py4j")
    assert spec is not None
    assert spec.origin is not None
    for folder in Path(spec.origin).parents:
        jars = sorted(folder.glob("share/py4j/py4j*.jar"))
        if jars:
            return jars[-1]
    raise FileNotFoundError("the package py4j came without its jar")
