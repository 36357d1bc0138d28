"""`python -m ludus`: the command line where no `ludus` is on the path."""

from ludus.cli import main

if __name__ == "__main__":
    main()
