"""`python -m tests.answers [FOLDER]`: records all answers again, or into another folder."""

import sys
import tempfile
from pathlib import Path

from tests.answers.home import answers_home
from tests.answers.recording import FOLDER, SECTIONS


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="samsa-answers-") as name,
        answers_home(Path(name) / "home") as home,
    ):
        for section in SECTIONS:
            with (folder / f"{section}.txt").open("w", encoding="utf-8") as file:
                for line in SECTIONS[section](home):
                    file.write(f"{line}\n")
                    file.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else FOLDER)
