"""Hashes passwords, few at a time: each deliberately takes memory and time.

Logins run in a thread each. Without a limit here, forty at once took 1.4 GB.
"""

from typing import Final

from django.contrib.auth.hashers import Argon2PasswordHasher

from gateway.access.turns import Turns

# At once: two cores hash no faster with more, and each takes the memory below.
PLACES: Final = 2
# Threads that wait for a place: the last one waits a second or two, which people accept.
QUEUE: Final = 20
# A longer wait is given up: the browser has left, or the machine is overloaded.
WAIT_SECONDS: Final = 10.0


# For the whole process.
TURNS: Final = Turns(
    places=PLACES, queue=QUEUE, wait_s=WAIT_SECONDS, what="passwords are being checked"
)


class PasswordHasher(Argon2PasswordHasher):
    """Argon2id with 46 MiB and two passes: more than OWASP recommends, and half of Django's memory.

    A hash of other parameters stays valid; Django renews it at the next login, also in a turn.
    """

    time_cost = 2
    memory_cost = 46 * 1024
    parallelism = 1

    def encode(self, password: str, salt: str) -> str:
        with TURNS.turn():
            encoded: str = super().encode(password, salt)
            return encoded

    def verify(self, password: str, encoded: str) -> bool:
        with TURNS.turn():
            is_right: bool = super().verify(password, encoded)
            return is_right
