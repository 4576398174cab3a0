"""`python -m nodeagent` is the same as the `nodeagent` command."""

from nodeagent.cli.main import entry

if __name__ == "__main__":
    entry()
