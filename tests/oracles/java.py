"""One Java virtual machine per test process, with Kafka's own client classes in it.

Started on first use, so that only workers that compare with Java pay for it, and stopped with the
process. Python calls into it through py4j; nothing is compiled.
"""

import atexit
import importlib.util
import os
from functools import cache
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from tests.extras import kafka_jars

# A small heap that starts fast: the tests hold a few messages at a time.
JAVA_OPTIONS = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]


@cache
def gateway() -> JavaGateway:
    """Return the gateway of this process; `gateway().jvm` is the root of Java's packages."""
    port, token, process = launch_gateway(
        jarpath=str(_py4j_jar()),
        classpath=os.pathsep.join(str(jar) for jar in kafka_jars()),
        javaopts=JAVA_OPTIONS,
        die_on_exit=True,  # should this process be killed, the machine goes with it
        enable_auth=True,
        return_proc=True,
    )
    opened = JavaGateway(
        gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True)
    )

    def stop() -> None:
        opened.shutdown()
        process.stdin.close()
        process.wait(timeout=10)

    atexit.register(stop)
    return opened


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
