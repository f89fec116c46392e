"""`python -m edgewise`: the command line."""

from edgewise.cli.main import entry

if __name__ == "__main__":
    entry()
