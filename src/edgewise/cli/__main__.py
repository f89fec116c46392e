"""Run the command line as `python -m edgewise.cli`."""

from edgewise.cli.main import entry

if __name__ == "__main__":
    entry()
