"""`python -m condense_once` is the command line."""

from condense_once.cli import main

if __name__ == "__main__":
    main()
