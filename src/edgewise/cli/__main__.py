"""`python -m edgewise.cli`, where the program `edgewise` is not on the path."""

from edgewise.cli.main import entry

if __name__ == "__main__":
    entry()
