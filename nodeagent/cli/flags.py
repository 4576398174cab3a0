"""Flags that several commands have, word for word the same. Imports nothing heavy: `explain` and `table` start fast."""

import argparse


def add_output_flag(parser: argparse.ArgumentParser) -> None:
    """`--output`: text for people, JSON for machines."""
    parser.add_argument("--output", choices=("text", "json"), default="text", help="form of the answer (text)")


def add_site_file_flag(parser: argparse.ArgumentParser) -> None:
    """`--site-file`, repeatable: site tables over the shipped ones."""
    parser.add_argument(
        "--site-file", action="append", default=[], metavar="FILE", help="site table on top; may be repeated"
    )
