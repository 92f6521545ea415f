"""Supervises one home: owns it, and starts, reports on and stops its components in order."""

import asyncio
import os
import shlex
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from brokers import agent_status, release
from brokers.clock import Clock
from brokers.config import environment
from brokers.supervisor import (
    broker_settings,
    certificates,
    control,
    ends,
    leftovers,
    picture,
    ports,
    valkey,
)
from brokers.supervisor.components import (
    CONNECT_KINDS,
    ROOT,
    STOP_ORDER,
    Component,
    Doors,
    Kind,
    Listener,
    connect_table,
    spark_table,
    table,
)
from brokers.supervisor.control import Command, Request
from brokers.supervisor.disks import Disk, Disks
from brokers.supervisor.errors import StartRefused
from brokers.supervisor.extras import Extras
from brokers.supervisor.front import Front, Journal
from brokers.supervisor.home import Home
from brokers.supervisor.inherited import inherited
from brokers.supervisor.options import Options, check, endpoint, is_loopback
from brokers.supervisor.orders import Orders
from brokers.supervisor.output import LogFile, printable
from brokers.supervisor.ownership import owned
from brokers.supervisor.vigil import SILENT_SECONDS, Vigil
from brokers.supervisor.watcher import News, State, Watcher

# The kernel has signalled the leftovers of a killed supervisor to stop; a broker that flushes gets
# the time that a stop would give it.
LEFTOVER_SECONDS: Final = 15.0
LEFTOVER_INTERVAL: Final = 0.1
# How soon the first connector of a home gets its processes.
CONNECT_INTERVAL: Final = 0.2
# Set if connectors run on Spark.
SPARK: Final = "SAMSA_SPARK"
# A second signal within this time is the same key press, or a copy of the first signal.
IMPATIENT_AFTER: Final = 0.5

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# The state of a process that runs and does not answer.
UNRESPONSIVE: Final = "unresponsive"
# Kinds that a start requires: a console that fails must not stop the brokers.
DATA_KINDS: Final = frozenset({Kind.AGENT, Kind.BROKER})
# The state of a process that answers and cannot do its work; its reason says why.
DEGRADED: Final = "degraded"
# Events that are kept as warnings; the others are information.
WARNINGS: Final = frozenset(
    {
        *("component.exited", "component.late", "component.killed", "component.silent"),
        *("disk.full", "reserve.given_up"),
    }
)

Table = Callable[[Options, Home, Doors], Sequence[Component]]


class Supervisor:
    """Runs once. Belongs to one event loop, in the thread that lives as long as the process."""

    def __init__(
        self,
        options: Options,
        *,
        clock: Clock,
        front: Front,
        home: Home,
        components: Table = table,
        folder: Path = ROOT,
    ) -> None:
        self._options = options
        self._clock = clock
        self._front = front
        self._home = home
        self._table = components
        self._folder = folder
        self._journal = Journal(LogFile(home.log_file("supervisor")), clock)
        self._watchers: list[Watcher] = []
        self._orders = Orders(home, clock, self._on_order)
        self._extras = Extras(home, clock, self._journal, environment())
        slots = range(1, options.brokers + 1)
        self._disks = Disks([home.folder, *map(home.log_dir, slots)], self._on_disk)
        self._stopping = asyncio.Event()
        self._stop_asked_at = 0.0
        # A start is over when all is healthy, or when it is known what will not be.
        self._is_start_over = False
        self._doors = Doors()
        # Why a detached start was given up; empty while it was not.
        self._failure = ""

    async def run(self) -> None:
        """Start everything and return when it has been stopped; StartRefused if it cannot start."""
        check(self._options)
        if self._options.web_cert is not None and self._options.web_key is not None:
            certificates.require_usable(self._options.web_cert, self._options.web_key)
        # An error in the file is reported before any running process is touched.
        broker_settings.environment(self._home.folder, ())
        if refusal := release.refusal(self._home.folder):
            raise StartRefused(refusal)
        # A home on a full disk has its reserve to start with.
        self._disks.make_way()
        self._home.prepare()
        async with owned(self._home):
            with self._signals():
                await self._run_owned()
        if self._failure:
            raise StartRefused(self._failure)

    async def _run_owned(self) -> None:
        await self._clear_leftovers()
        self._require_ports()
        with ExitStack() as listening:
            self._doors = self._open_doors(listening)
            await self._supervise()
        for pause in leftovers.kill_all(self._home.folder, self._clock.monotonic):
            await asyncio.sleep(pause)
        self._home.remove_sockets()
        self._journal.note("supervisor.stopped", "info")
        self._journal.close()

    def stop(self) -> None:
        """Begin to stop everything in order; `run` returns when it is done."""
        self._stopping.set()

    # --- start ---------------------------------------------------------------------------------

    async def _clear_leftovers(self) -> None:
        folder = self._home.folder
        if not leftovers.send(folder, signal.SIGTERM):
            return
        self._front.say("waiting for processes that an earlier run left behind")
        end = self._clock.monotonic() + LEFTOVER_SECONDS
        # There is no event for the end of another process's children.
        while (  # noqa: ASYNC110
            any(leftovers.marked(folder)) and self._clock.monotonic() < end
        ):
            await asyncio.sleep(LEFTOVER_INTERVAL)
        for pause in leftovers.kill_all(folder, self._clock.monotonic):
            await asyncio.sleep(pause)

    def _require_ports(self) -> None:
        for slot, port in enumerate(self._options.ports(), start=1):
            ports.require_free(self._options.bind, port, f"broker-{slot}", "--port")

    def _open_doors(self, listening: ExitStack) -> Doors:
        """Bind the ports of console and gateway, first those that must not change."""
        given = self._options
        found: dict[str, Listener | None] = {"web": None, "rest": None, "connect": None}
        doors = [
            ("web", given.web_port, given.can_web_port_move, "the web server"),
            ("rest", given.rest_port, given.can_rest_port_move, "the gateway"),
            ("connect", self._connect_port(), given.can_connect_port_move, "Connect's REST"),
        ]
        for name, port, can_move, purpose in sorted(doors, key=lambda door: door[2]):
            if port is None:
                continue
            option = f"--{name}-port"
            listener = (
                ports.listen_near(given.door_host, port, purpose, option, but=given.ports())
                if can_move and port
                else ports.listen(given.door_host, port, purpose, option)
            )
            listening.enter_context(listener)
            bound: int = listener.getsockname()[1]
            found[name] = Listener(descriptor=listener.fileno(), port=bound)
        is_foreign = bool(environment().get("REDIS_URL"))
        has_store = given.rest_port is not None and not is_foreign
        program = valkey.program() if has_store else None
        return Doors(**found, valkey=program, has_foreign_store=is_foreign)

    def _connect_port(self) -> int | None:
        # It is served by the web server.
        return None if self._options.web_port is None else self._options.connect_port

    async def _supervise(self) -> None:
        components = self._table(self._options, self._home, self._doors)
        self._watchers = [self._watched(component) for component in components]
        self._orders.begin(self._watchers)
        self._home.write_settings(self._reach().settings())
        self._journal.note("supervisor.started", "info", pid=os.getpid())
        self._greet()
        commands = {
            "status": Command(run=lambda _request: self.status()),
            "stop": Command(run=self._on_stop_command),
            **self._orders.commands(),
        }
        async with control.serve(self._home, commands), asyncio.TaskGroup() as group:
            lives = [group.create_task(watcher.run()) for watcher in self._watchers]
            joining = [
                group.create_task(self._join(rows, mark, group, lives))
                for mark, rows in self._later()
            ]
            joining.append(group.create_task(self._disks.watch()))
            vigil = Vigil(lambda: self._watchers, self._clock)
            joining.append(group.create_task(vigil.run()))
            # Only the console requests installs, so a home without one never installs.
            if self._options.web_port is not None:
                joining.append(group.create_task(self._extras.run()))
            await self._stopping.wait()
            for task in joining:
                task.cancel()
            await self._stop_in_order()
            # A process that survives a kill hangs in the kernel; do not wait for it.
            for life in lives:
                life.cancel()

    def _watched(self, component: Component) -> Watcher:
        return Watcher(
            component,
            clock=self._clock,
            environment=inherited(component.kind, environment()),
            folder=self._folder,
            log=LogFile(self._home.log_file(component.name)),
            tell=self._on_news,
            show=lambda component, line: self._front.say(f"  {component.name:<9} | {line}"),
        )

    def _later(self) -> list[tuple[Path | None, list[Component]]]:
        """Return each group of components with the file that starts it; None starts it now."""
        given = self._options, self._home, self._doors
        connect, spark = connect_table(*given), spark_table(*given)
        if self._options.rest_port is not None or self._options.web_port is not None:
            return [(self._home.connect_mark, connect), (self._home.spark_mark, spark)]
        # A node has no console that writes marker files: its options start its workers.
        return [(None, connect), (None, spark if SPARK in environment() else [])]

    async def _join(
        self,
        components: list[Component],
        mark: Path | None,
        group: asyncio.TaskGroup,
        lives: list[asyncio.Task[None]],
    ) -> None:
        """Run the processes for connectors while connectors exist."""
        while True:
            await self._until_marked(mark, is_wanted=True)
            joined = [self._watched(component) for component in components]
            self._watchers += joined
            lives += [group.create_task(watcher.run()) for watcher in joined]
            if mark is None:
                return
            await self._until_marked(mark, is_wanted=False)
            # If the home stops before that, it stops them with all others.
            await asyncio.gather(*(watcher.stop() for watcher in joined))
            for watcher in joined:
                self._watchers.remove(watcher)
            lives[:] = [life for life in lives if not life.done()]
            self._journal.note("connect.left", "info")
            for watcher in joined:
                self._front.say(f"  {watcher.component.name:<9} stopped: no connector needs it")

    async def _until_marked(self, mark: Path | None, *, is_wanted: bool) -> None:
        # Notifications about new files are not portable.
        while mark is not None and mark.exists() is not is_wanted:  # noqa: ASYNC110, ASYNC240
            await asyncio.sleep(CONNECT_INTERVAL)

    def _greet(self) -> None:
        self._front.say(f"Samsa is starting in {self._home.folder}")
        if not is_loopback(self._options.bind):
            self._front.say(
                f"  --insecure: every host that reaches {self._options.bind} may read, write and "
                "delete all data; no password is required, and nothing is encrypted"
            )
        for watcher in self._watchers:
            if watcher.hold is not None:
                self._front.say(f"  {watcher.component.name:<9} {picture.held(watcher)}")
        kept = [path.name for path in self._home.data.glob("broker-*")]
        more = sorted(set(kept) - {watcher.component.name for watcher in self._watchers})
        if more:
            self._front.say(
                f"  the home also has logs of {', '.join(more)}: those partitions stay offline"
                f" until it is started with more --brokers"
            )

    # --- while it runs -------------------------------------------------------------------------

    def _on_news(self, news: News) -> None:
        level = "warning" if news.event in WARNINGS else "info"
        self._journal.note(news.event, level, component=news.component.name, detail=news.text)
        watcher = self._watcher(news.component)
        where = ""
        if news.event == "component.ready" and watcher.port:
            where = f", {endpoint(self._options.advertised_host, watcher.port)}"
        self._front.say(f"  {news.component.name:<9} {news.text}{where}")
        if news.event == "component.ready":
            self._renew_settings()
        if news.event == "component.exited":
            self._disks.make_way()
            if news.component.kind is Kind.BROKER:
                self._keep_ends()
        if not self._is_start_over:
            self._judge_start()

    def _on_order(self, watcher: Watcher, event: str, text: str) -> None:
        self._journal.note(event, "info", component=watcher.component.name, detail=text)
        self._front.say(f"  {watcher.component.name:<9} {text}")
        if not self._is_start_over:
            self._judge_start()

    def _on_disk(self, event: str, disk: Disk) -> None:
        level = "warning" if event in WARNINGS else "info"
        self._journal.note(event, level, **disk.told())
        if disk.trouble and event == "disk.full":
            self._front.say(f"  {disk.trouble}")

    def _keep_ends(self) -> None:
        """Write how brokers ended, for their pages."""
        known = {
            watcher.broker_id: ends.BrokerEnd(
                how=watcher.last_end.how, at_ms=watcher.last_end.at_ms, times=watcher.restarts.total
            )
            for watcher in self._of(Kind.BROKER)
            if watcher.last_end is not None and watcher.broker_id is not None
        }
        try:
            ends.write(self._home.folder, known)
        except OSError as error:
            self._journal.note("ends.not_written", "warning", detail=str(error))

    def _renew_settings(self) -> None:
        try:
            self._home.write_settings(self._reach().settings())
        except StartRefused as error:
            # A disk that is full now must not end running processes.
            self._disks.make_way()
            self._journal.note("settings.not_written", "warning", detail=str(error))

    def _judge_start(self) -> None:
        """End the start when all is healthy, or when a detached start cannot continue."""
        late = [
            watcher
            for watcher in self._watchers
            if watcher.state is not State.HEALTHY
            and not watcher.is_kept_down
            and watcher.component.kind not in CONNECT_KINDS
        ]
        if not late:
            self._finish_start("")
        elif self._options.is_detached:
            failed = [watcher for watcher in late if watcher.is_given_up]
            needed = [watcher for watcher in failed if watcher.component.kind in DATA_KINDS]
            if needed:
                # No user watches a detached start: stop everything rather than run half of it.
                self._failure = f"everything was stopped again: {self._blamed(needed[0])}"
                self.stop()
            elif failed == late:
                self._finish_start(
                    f"brokers serve, and what is missing is tried again (see `status`, or stop all"
                    f" with `down`): {self._blamed(failed[0])}"
                )

    def _blamed(self, watcher: Watcher) -> str:
        log = self._home.log_file(watcher.component.name)
        cause = f": {watcher.cause}" if watcher.cause else ""
        return f"{watcher.component.name} cannot start ({watcher.reason}), {log} has more{cause}"

    def _finish_start(self, complaint: str) -> None:
        self._is_start_over = True
        self._front.finish(self._addresses(), complaint=complaint)

    def _watcher(self, component: Component) -> Watcher:
        return next(watcher for watcher in self._watchers if watcher.component is component)

    async def status(self) -> Mapping[str, Any]:
        """Return the state of all components; running processes are probed."""
        good = [watcher for watcher in self._watchers if watcher.state is State.HEALTHY]
        answers = await asyncio.gather(*(watcher.answers() for watcher in good))
        mute = [
            watcher for watcher, has_answered in zip(good, answers, strict=True) if not has_answered
        ]
        states, troubles = dict[str, str](), dict[str, str]()
        for watcher in self._watchers:
            name = watcher.component.name
            states[name] = watcher.state.value
            if watcher in mute:
                states[name], troubles[name] = UNRESPONSIVE, _silence(watcher)
            elif watcher.is_looping:
                states[name] = State.CRASH_LOOP.value
        for watcher in self._of(Kind.AGENT):
            trouble = self._trouble_of(watcher)
            if trouble and watcher in good and watcher not in mute:
                states[watcher.component.name] = DEGRADED
                troubles[watcher.component.name] = trouble
        own = (State.STOPPING if self._stopping.is_set() else State.HEALTHY).value
        told = picture.status(self._reach(), self._watchers, states, troubles, own_state=own)
        return {**told, "disks": [disk.told() for disk in self._disks.known]}

    def _trouble_of(self, agent: Watcher) -> str:
        """Return why a running agent cannot do its work; empty if it can."""
        said = agent_status.read(self._home.folder)
        # The status of a former process no longer holds.
        if said is None or said.pid != agent.pid:
            return ""
        return said.trouble(monotonic_ms=int(1000 * self._clock.monotonic())) or said.other_files

    def _of(self, kind: Kind) -> list[Watcher]:
        return [watcher for watcher in self._watchers if watcher.component.kind is kind]

    def _reach(self) -> picture.Reach:
        return picture.Reach(
            home=self._home.folder,
            options=self._options,
            ports=tuple(watcher.port for watcher in self._of(Kind.BROKER)),
            web_port=self._doors.web.port if self._doors.web else None,
            rest_port=self._doors.rest.port if self._doors.rest else None,
            connect_port=self._doors.connect.port if self._doors.connect else None,
        )

    def _addresses(self) -> list[str]:
        reach = self._reach()
        lines = [f"Kafka     {reach.bootstrap}"]
        if reach.console is not None and self._serves(Kind.WEB):
            lines.append(f"Console   {reach.console}")
            lines.append(f"Login     {self._login()}")
        if reach.gateway is not None and self._serves(Kind.GATEWAY):
            lines.append(f"REST      {reach.gateway}")
        if reach.connect is not None and self._serves(Kind.WEB):
            lines.append(f"Connect   {reach.connect}")
        down = f"./samsa down --home {shlex.quote(str(self._home.folder))}"
        stop = down if self._options.is_detached else "Ctrl-C"
        return [*lines, f"Stop      {stop}"]

    def _serves(self, kind: Kind) -> bool:
        return any(watcher.state is State.HEALTHY for watcher in self._of(kind))

    def _login(self) -> str:
        """Return how to sign in, without naming a password file that does not exist."""
        file = self._home.password_file
        if file.exists():
            return f"admin, with the password in {file}"
        founded_on = self._of(Kind.AGENT)[0].said.get("founded_on")
        if isinstance(founded_on, str) and founded_on:
            return (
                f"admin, made on {printable(founded_on)} when the cluster began: that home has the"
                f" password in secrets/{file.name} until it is changed"
            )
        return (
            f"a user of this console; `./samsa manage --home {shlex.quote(str(self._home.folder))}"
            f" changepassword admin` sets a new password"
        )

    # --- stop ----------------------------------------------------------------------------------

    @contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        # Under nohup, the supervisor ignores a terminal that closes.
        is_deaf = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        heard = [n for n in STOP_SIGNALS if not (is_deaf and n is signal.SIGHUP)]
        for number in heard:
            loop.add_signal_handler(number, self._on_signal)
        try:
            yield
        finally:
            for number in heard:
                loop.remove_signal_handler(number)

    def _on_signal(self) -> None:
        now = self._clock.monotonic()
        if not self._stopping.is_set():
            self._stop_asked_at = now
            self._front.say("stopping; once more to end everything at once")
            self.stop()
        elif now - self._stop_asked_at > IMPATIENT_AFTER:
            for watcher in self._watchers:
                watcher.kill()

    async def _on_stop_command(self, _request: Request) -> Mapping[str, Any]:
        self.stop()
        return {"stopping": True}

    async def _stop_in_order(self) -> None:
        # Brokers write checkpoints, and the mark of a clean shutdown last.
        self._disks.make_way()
        for kinds in STOP_ORDER:
            watchers = [watcher for kind in kinds for watcher in self._of(kind)]
            await asyncio.gather(*(watcher.stop() for watcher in watchers))


def _silence(watcher: Watcher) -> str:
    """Return since when a process does not answer, and what happens next."""
    silent = f"has not answered for {watcher.silent_seconds:.0f} s"
    if watcher.has_beats and watcher.is_beating:
        return "works, but does not answer GET /health"
    if watcher.is_on_hold:
        return silent
    return f"{silent}, and is restarted after {SILENT_SECONDS:g} s of silence"
