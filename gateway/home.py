"""Locates the home, and reads the files that its agent writes there for the web server.

Separate from the settings, which are fixed once read: code that waits for the agent's files must
know their paths before.
"""

import os
import time
from pathlib import Path
from typing import Final

from brokers import agent_status

SAMSA_HOME: Final = Path(os.environ.get("SAMSA_HOME") or ".samsa").absolute()
# Tools that only inspect the code name no home, and must not create one.
IS_NAMED: Final = bool(os.environ.get("SAMSA_HOME"))
SAMSA_SECRETS: Final = SAMSA_HOME / "secrets"
SESSION_KEYS: Final = SAMSA_SECRETS / "session"
CLUSTER_ID: Final = SAMSA_HOME / "cluster-id"
# The trusted proxies in front, as the operator wrote them; the settings validate them.
PROXIES: Final = os.environ.get("SAMSA_TRUSTED_PROXIES", "").strip()
HAS_PROXY: Final = bool(PROXIES)


def missing() -> list[Path]:
    """Return the files that the console needs and that do not exist yet."""
    if not IS_NAMED:
        return []
    return [file for file in (CLUSTER_ID, SESSION_KEYS) if not file.exists()]


def agent_trouble() -> str:
    """Return, for any client, why the cluster cannot be changed now; empty if it can."""
    if not IS_NAMED:
        return ""
    said = agent_status.read(SAMSA_HOME)
    if said is None:
        return "no agent runs in this home, so nothing can be changed"
    return said.public_trouble(monotonic_ms=int(1000 * time.monotonic()))
