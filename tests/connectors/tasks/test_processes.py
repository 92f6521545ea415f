"""Processes are known by number and beginning, and their end is seen."""

import os
import subprocess
import sys

from connectors.tasks.processes import Process, Watched, began, this_one


def test_the_end_of_a_process_is_seen() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = this_one(child.pid)
    watched = Watched()

    gone_at_first = watched.watch({process})
    seen_alive = watched.wait(0)
    child.kill()
    seen_ended = watched.wait(30)
    child.communicate()

    assert (gone_at_first, seen_alive, seen_ended) == (set(), set(), {process})


def test_a_number_that_another_process_has_now_is_a_process_that_is_gone() -> None:
    stranger = Process(number=os.getpid(), began=began(os.getpid()) - 1)

    assert Watched().watch({stranger}) == {stranger}
