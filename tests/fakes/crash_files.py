"""Files on a machine whose power may fail: what was not synced is lost, torn or partly there.

How it works. `CrashFiles` does every call for real in a `live` folder, so the program under test
runs at full speed and reads what it wrote, and after each call it appends a record of it to a
journal. It never syncs anything: the journal notes when a sync began and when it returned. The
program may be killed with -9 at any moment; a call that was cut short is simply not in the journal,
and nobody was told that it had succeeded. After that the parent's `CrashDisk` replays the journal
into a small model of a file system and lets a seeded random decide what had reached the platter:

- bytes of a file covered by a `datasync` that had returned are there, always;
- later writes to it are lost, or there, or there up to a byte, or there in some pages of 4,096
  bytes only, since pages are written back in any order; what was lost within reads as zeros, or as
  the bytes before, and the file's length may have grown without any of its bytes;
- a `datasync` that fails takes the waiting bytes of its file away from the platter for good, as a
  kernel does that marks them clean; programs go on reading them until the power fails;
- a truncation is there, and all earlier ones with it, or it is not, and then nothing after it is;
- names created, renamed or removed are there once `sync_folder` has returned; later ones are undone
  from some moment on, per folder and in order, as journaling file systems do. A name may thus stand
  for a file without bytes, and a synced file may have lost its name.

The result is written out to the `live` folder: the next program starts from it. A process that
dies while the machine goes on is the same replay with everything kept.
"""

import errno
import marshal
import os
import random
import shutil
import struct
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from brokers.disk_room import Room
from brokers.storage.files import Buffer, LocalFiles

PAGE = 4096
_LENGTH = struct.Struct(">I")


class CrashFiles:
    """Files under `root`, with a journal of everything done to them. Any thread may call."""

    def __init__(self, root: str, journal: str) -> None:
        self._disk = LocalFiles()
        self.fails_sync = False
        self._root = root
        self._journal = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
        self._serials: dict[int, int] = {}  # open descriptors -> number of the open
        # Numbers never repeat in a journal, also when several programs wrote to it in turn.
        self._next = count(os.fstat(self._journal).st_size)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Closes what the program left open, as the end of a process does."""
        for fd in [*self._serials, self._journal]:
            os.close(fd)
        self._serials.clear()

    def open(self, path: str, flags: int) -> int:
        assert not flags & os.O_APPEND, "the model keeps positions, it does not append"
        fd = self._disk.open(path, flags)
        self._serials[fd] = serial = next(self._next)
        self._note("open", serial, self._relative(path), flags)
        return fd

    def close(self, fd: int) -> None:
        del self._serials[fd]
        self._disk.close(fd)

    def write(self, fd: int, data: Buffer) -> int:
        taken = self._disk.write(fd, data)
        self._note("write", self._serials[fd], bytes(memoryview(data).cast("B")[:taken]))
        return taken

    def pwrite(self, fd: int, data: Buffer, position: int) -> int:
        taken = self._disk.pwrite(fd, data, position)
        content = bytes(memoryview(data).cast("B")[:taken])
        self._note("pwrite", self._serials[fd], content, position)
        return taken

    def pread(self, fd: int, length: int, position: int) -> bytes:
        return self._disk.pread(fd, length, position)

    def truncate(self, fd: int, length: int) -> None:
        self._disk.truncate(fd, length)
        self._note("truncate", self._serials[fd], length)

    def reserve(self, fd: int, position: int, length: int) -> None:
        self._disk.reserve(fd, position, length)

    def room(self, place: str | int) -> Room:
        return self._disk.room(place)

    def size(self, fd: int) -> int:
        return self._disk.size(fd)

    def modified_ms(self, fd: int) -> int:
        return self._disk.modified_ms(fd)

    def seek(self, fd: int, position: int) -> None:
        self._disk.seek(fd, position)
        self._note("seek", self._serials[fd], position)

    def datasync(self, fd: int) -> None:
        if self.fails_sync:
            self._note("sync_failed", self._serials[fd])
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        token = next(self._next)
        self._note("sync", self._serials[fd], token)
        self._note("synced", token)

    def rename(self, source: str, target: str) -> None:
        self._disk.rename(source, target)
        self._note("rename", self._relative(source), self._relative(target))

    def unlink(self, path: str) -> None:
        self._disk.unlink(path)
        self._note("unlink", self._relative(path))

    def make_folder(self, path: str) -> None:
        self._disk.make_folder(path)
        self._note("make_folder", self._relative(path))

    def remove_folder(self, path: str) -> None:
        self._disk.remove_folder(path)
        self._note("unlink", self._relative(path))

    def list_folder(self, path: str) -> list[str]:
        return self._disk.list_folder(path)

    def exists(self, path: str) -> bool:
        return self._disk.exists(path)

    def sync_folder(self, path: str) -> None:
        token = next(self._next)
        self._note("sync_folder", self._relative(path), token)
        self._note("synced", token)

    def _relative(self, path: str) -> str:
        relative = os.path.relpath(path, self._root)
        assert not relative.startswith(".."), f"{path} is outside of {self._root}"
        return relative

    def _note(self, kind: str, *arguments: int | str | bytes) -> None:
        record = marshal.dumps((kind, *arguments))
        # One call, so that threads and a kill leave whole records, or at worst half a last one.
        os.write(self._journal, _LENGTH.pack(len(record)) + record)


class _File:
    """A file's bytes on the platter and the changes not yet known to be there."""

    def __init__(self, content: bytes = b"") -> None:
        self.platter = bytearray(content)
        self.waiting: list[tuple[int, bytes | None]] = []  # (position, bytes) or (length, None)
        self.settled = 0  # changes that went to the platter before `waiting` begins

    def mark(self) -> int:
        return self.settled + len(self.waiting)

    def settle(self, mark: int) -> None:
        done = max(0, mark - self.settled)
        for position, data in self.waiting[:done]:
            _apply(self.platter, position, data)
        del self.waiting[:done]
        self.settled += done

    def forget(self) -> None:
        """Take what waits for written, though it is not."""
        self.settled += len(self.waiting)
        self.waiting.clear()

    def lose(self, rng: random.Random, mode: str) -> None:
        if mode == "mixed":
            mode = rng.choice(["all kept", "all lost", "a prefix", "pages", "pages"])
        if mode == "all kept":
            self.settle(self.mark())
        elif mode == "a prefix":
            self._keep_prefix(rng)
        elif mode == "pages":
            self._keep_pages(rng)
        self.waiting.clear()

    def _keep_prefix(self, rng: random.Random) -> None:
        if not self.waiting:
            return
        whole = rng.randrange(len(self.waiting))
        position, data = self.waiting[whole]
        self.settle(self.settled + whole)
        if data:
            _apply(self.platter, position, data[: rng.randrange(len(data) + 1)])

    def _keep_pages(self, rng: random.Random) -> None:
        """Some pages as they are now, some as they were, some with the length only."""
        cuts = [number for number, (_, data) in enumerate(self.waiting) if data is None]
        stop = rng.choice([*cuts, len(self.waiting)])
        cut = max((number + 1 for number in cuts if number < stop), default=0)
        self.settle(self.settled + cut)
        before = bytes(self.platter)
        self.settle(self.settled + stop - cut)
        kept = rng.random()
        for start in range(0, len(self.platter), PAGE):
            if rng.random() >= kept:
                end = min(start + PAGE, len(self.platter))
                self.platter[start:end] = before[start:end].ljust(end - start, b"\0")
        if rng.random() < 0.5:
            # Some file systems set the new length at once, others as pages are written back.
            del self.platter[max(len(before), len(self.platter.rstrip(b"\0"))) :]


class _Folder:
    """Names: as programs see them, as the platter has them, and the changes in between."""

    def __init__(self) -> None:
        self.now: dict[str, _File | _Folder] = {}
        self.platter: dict[str, _File | _Folder] = {}
        self.waiting: list[dict[str, _File | _Folder | None]] = []
        self.settled = 0

    def change(self, names: dict[str, "_File | _Folder | None"]) -> None:
        _rename(self.now, names)
        self.waiting.append(names)

    def mark(self) -> int:
        return self.settled + len(self.waiting)

    def settle(self, mark: int) -> None:
        done = max(0, mark - self.settled)
        for names in self.waiting[:done]:
            _rename(self.platter, names)
        del self.waiting[:done]
        self.settled += done

    def lose(self, rng: random.Random, mode: str) -> None:
        if mode == "all kept":
            self.settle(self.mark())
        elif mode != "all lost":
            self.settle(self.settled + rng.randrange(len(self.waiting) + 1))
        self.waiting.clear()
        self.now = dict(self.platter)
        for node in self.platter.values():
            node.lose(rng, mode)

    def at(self, path: str) -> "_Folder":
        folder = self
        for name in [part for part in path.split("/") if part not in {"", "."}]:
            inner = folder.now[name]
            assert isinstance(inner, _Folder)
            folder = inner
        return folder

    def write_out(self, path: Path) -> None:
        """Makes `path` look like the platter; what does already is not touched.

        Most is as it was, and a folder made anew for every reboot would cost more than all else.
        """
        path.mkdir(exist_ok=True)
        with os.scandir(path) as entries:
            found = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
        for name, is_folder in found.items():
            node = self.platter.get(name)
            if node is None or isinstance(node, _Folder) is not is_folder:
                _remove(path / name, is_folder=is_folder)
        for name, node in self.platter.items():
            if isinstance(node, _Folder):
                node.write_out(path / name)
            elif name not in found or (path / name).read_bytes() != node.platter:
                (path / name).write_bytes(node.platter)


class CrashDisk:
    """The machine that programs run on, seen from outside: it can stop them and lose power.

    `live` is the folder to work in; `files()` or a child process with `CrashFiles(live, journal)`
    works there.
    """

    MODES = ("mixed", "mixed", "mixed", "all lost", "a prefix", "pages")

    def __init__(self, folder: Path) -> None:
        self.live = folder / "live"
        self.journal = folder / "journal"
        self._root = _Folder()
        folder.mkdir(exist_ok=True)
        self._write_out()

    def files(self) -> CrashFiles:
        return CrashFiles(str(self.live), str(self.journal))

    def lose_power(self, rng: random.Random) -> None:
        """Everything that was not synced meets its random fate."""
        self._reboot(rng, rng.choice(self.MODES))

    def kill(self) -> None:
        """Only the process died: the machine still has every byte that was written."""
        self._reboot(random.Random(0), "all kept")

    def _reboot(self, rng: random.Random, mode: str) -> None:
        _Replay(self._root).run(self.journal)
        self._root.lose(rng, mode)
        self._write_out()

    def _write_out(self) -> None:
        self._root.write_out(self.live)
        self.journal.write_bytes(b"")


class _Replay:
    """Does to the model what the journal says was done to the live folder."""

    def __init__(self, root: _Folder) -> None:
        self._root = root
        self._opened: dict[int, tuple[_File, list[int]]] = {}
        self._syncing: dict[int, tuple[_File | _Folder, int]] = {}

    def run(self, journal: Path) -> None:
        for kind, *arguments in _records(journal.read_bytes()):
            getattr(self, f"_{kind}")(*arguments)

    def _open(self, serial: int, path: str, flags: int) -> None:
        folder, name = self._place(path)
        file = folder.now.get(name)
        if file is None:
            file = _File()
            folder.change({name: file})
        assert isinstance(file, _File)
        if flags & os.O_TRUNC:
            file.waiting.append((0, None))
        self._opened[serial] = (file, [0])

    def _seek(self, serial: int, position: int) -> None:
        self._opened[serial][1][0] = position

    def _write(self, serial: int, data: bytes) -> None:
        file, position = self._opened[serial]
        file.waiting.append((position[0], data))
        position[0] += len(data)

    def _pwrite(self, serial: int, data: bytes, position: int) -> None:
        self._opened[serial][0].waiting.append((position, data))

    def _truncate(self, serial: int, length: int) -> None:
        self._opened[serial][0].waiting.append((length, None))

    def _sync(self, serial: int, token: int) -> None:
        file = self._opened[serial][0]
        self._syncing[token] = (file, file.mark())

    def _sync_failed(self, serial: int) -> None:
        self._opened[serial][0].forget()

    def _sync_folder(self, path: str, token: int) -> None:
        folder = self._root.at(path)
        self._syncing[token] = (folder, folder.mark())

    def _synced(self, token: int) -> None:
        node, mark = self._syncing.pop(token)
        node.settle(mark)

    def _rename(self, source: str, target: str) -> None:
        old_folder, old_name = self._place(source)
        new_folder, new_name = self._place(target)
        node = old_folder.now[old_name]
        if old_folder is new_folder:
            old_folder.change({old_name: None, new_name: node})
        else:
            new_folder.change({new_name: node})
            old_folder.change({old_name: None})

    def _unlink(self, path: str) -> None:
        folder, name = self._place(path)
        folder.change({name: None})

    def _make_folder(self, path: str) -> None:
        folder, name = self._place(path)
        folder.change({name: _Folder()})

    def _place(self, path: str) -> tuple[_Folder, str]:
        folder, name = os.path.split(path)
        return self._root.at(folder), name


def _records(journal: bytes) -> Iterator[tuple[Any, ...]]:
    position = 0
    while position + _LENGTH.size <= len(journal):
        (length,) = _LENGTH.unpack_from(journal, position)
        position += _LENGTH.size
        if position + length > len(journal):
            return
        # Written by our own child a moment ago, and several times faster than JSON.
        yield marshal.loads(journal[position : position + length])  # noqa: S302
        position += length


def _remove(path: Path, *, is_folder: bool) -> None:
    if is_folder:
        shutil.rmtree(path)
    else:
        path.unlink()


def _apply(content: bytearray, position: int, data: bytes | None) -> None:
    """A write at a position, or with no data a truncation to a length; both may leave zeros."""
    if len(content) < position:
        content.extend(bytes(position - len(content)))
    if data is None:
        del content[position:]
    else:
        content[position : position + len(data)] = data


def _rename(names: dict[str, _File | _Folder], changes: dict[str, _File | _Folder | None]) -> None:
    for name, node in changes.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node
