"""The command group, and what all commands share: help, version, errors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import click

from floodline import __version__
from floodline.errors import FloodlineError

USAGE = 2

# command → the module of floodline.cli that has it as `command`, and its line in `--help`
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("_demo.command", "Watch a program that leaks beside the same program with bounds."),
    "run": ("_run", "Run a program and record what grows in it."),
    "attach": ("_attach", "Watch a running process for a while."),
    "report": ("_report", "Write the report of a recording."),
    "top": ("_top.command", "Show what grows in a running program, in the terminal."),
    "scan": ("_scan.command", "Find containers in source code that only grow."),
    "explain": ("_explain", "Explain a rule of scan."),
    "verify": ("_verify", "Prove or refute announced fixes."),
    "soak": ("_soak", "Run a scenario for many rounds and report what grows."),
    "serve": ("_serve", "Serve sessions over HTTP, for OpenAI clients."),
    "store": ("_store.command", "Look after a store of sessions, or copy it."),
}


class _Commands(click.Group):
    """Imports a command only when it is needed, so that each starts quickly."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 -- click's signature
        cmd_name: str,
    ) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"floodline.cli.{COMMANDS[cmd_name][0]}").command
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 -- click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="floodline")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def group(debug: bool) -> None:
    """Bounded memory for long-running Python agents and services."""


def main(arguments: Sequence[str] | None = None, *, left: list[object] | None = None) -> int:
    """Run a command and return its exit status; an error is one line unless `--debug` is given.

    A command may append to `left` what is not worth freeing before the process ends.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        status = group.main(given, prog_name="floodline", standalone_mode=False, obj=left)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except FloodlineError as error:
        if "--debug" in given:
            raise
        click.echo(f"floodline: {error}", err=True)
        return USAGE
    except OSError as error:  # standard output on a full disk, no more processes
        if "--debug" in given:
            raise
        click.echo(f"floodline: {error}; floodline --debug {given[0]} … shows where", err=True)
        return USAGE
    return status if isinstance(status, int) else 0
