"""Installs the Node packages of a test client, exactly as in its lock file.

An extra of the tests, never a requirement. npm's own settings name the registry, and the lock file
has versions and hashes only. Packages are installed in `.venv`, under a name derived from the lock
file, so that a changed lock is installed again.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cli.environment import ROOT
from cli.installer import InstallError

# 4 MB; the limit is for a registry that answers but sends nothing.
INSTALL_SECONDS = 180
PROJECT_FILES = ("package.json", "package-lock.json")


class NodePackages:
    """The packages of a project in one folder, which appears only when it is complete."""

    def __init__(self, project: Path, environment: Path = ROOT / ".venv") -> None:
        self._project = project
        lock = (project / "package-lock.json").read_bytes()
        digest = hashlib.sha256(lock).hexdigest()[:12]
        self.folder = environment / f"{project.name}-{digest}"

    @property
    def search_path(self) -> str:
        """The NODE_PATH of programs that use the packages."""
        return str(self.folder / "node_modules")

    def is_here(self) -> bool:
        return self.folder.is_dir()

    def ensure(self) -> None:
        """Install the packages unless they are installed."""
        if self.is_here():
            return
        npm = shutil.which("npm")
        if npm is None:
            raise InstallError("npm is not installed")
        self.folder.parent.mkdir(exist_ok=True)
        started = time.monotonic()
        sys.stderr.write(f"  npm: fetching the packages of {self._project.name}, 4 MB …\n")
        with tempfile.TemporaryDirectory(dir=self.folder.parent, prefix="npm-") as name:
            packages = Path(name, "packages")
            packages.mkdir()
            for file in PROJECT_FILES:
                shutil.copy(self._project / file, packages)
            # Without the scripts of packages: none of these needs one.
            run_npm([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], packages)
            try:
                packages.rename(self.folder)
            except OSError as error:
                # Another run may have been faster.
                if not self.is_here():
                    raise InstallError(f"the packages could not be kept: {error}") from error
        sys.stderr.write(f"  npm: done [{time.monotonic() - started:.0f} s]\n")


def run_npm(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InstallError(f"npm was not done within {INSTALL_SECONDS} s") from error
    except OSError as error:
        raise InstallError(f"npm could not be started: {error}") from error
    if done.returncode != 0:
        raise InstallError(f"npm failed:\n{done.stdout[-1000:]}")
