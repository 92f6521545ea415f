"""`python -m cli`: what `samsa` hands over to."""

from cli.commands import main

if __name__ == "__main__":
    main(prog_name="./samsa")
