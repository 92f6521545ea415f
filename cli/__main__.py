"""`python -m cli`: the entry point of `samsa`."""

from cli.commands import main

if __name__ == "__main__":
    main(prog_name="./samsa")
