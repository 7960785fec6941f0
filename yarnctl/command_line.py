"""What both programs' command lines share: lazy commands, errors in one line, two outputs, progress.

Law: ``--help`` imports click and nothing else. A command's module is imported when the command
runs; its one-line help is in the program's table. Whatever goes wrong by the user's doing
is one line ``error: ...`` on stderr and an exit status: 0 done, 1 a negative answer, 2 bad
input (or an output that cannot be written), 3 unreachable, 130 interrupted, 141 the reader is gone.
Results go to stdout, everything else to stderr.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self, TextIO, TypeVar, cast

import click

from yarnctl.errors import BadInput, YarnctlError
from yarnctl.extras import missing_of

if TYPE_CHECKING:
    from pathlib import Path

SHELLS = ("bash", "fish", "zsh")
"""The shells that ``completion`` can write for."""

INTERRUPTED = 130
PIPE_CLOSED = 141
HELP_WIDTH = 80

WORTH_SHOWING_S = 1.0
"""What takes longer gets a bar."""
REDRAWN_S = 0.1

COMPLETION = (
    "yarnctl.command_line:completion",
    "Print the script that completes commands in a shell.",
)

Function = TypeVar("Function", bound=Callable[..., Any])
Item = TypeVar("Item")

LazyCommand = tuple[str, str]
"""Where a command is (``module:attribute``) and the one line that ``--help`` shows."""


class LazyGroup(click.Group):
    """A group that imports a command's module only when that command runs.

    ``extras``: those that its commands may need, in the order in which a missing package is looked up.
    """

    def __init__(
        self, *args: Any, lazy: Mapping[str, LazyCommand], extras: Sequence[str] = (), **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = dict(lazy)
        self.extras = tuple(extras)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, in the order of the alphabet."""
        return sorted(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command, importing its module now."""
        return load(self.lazy[cmd_name][0]) if cmd_name in self.lazy else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table, importing none of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.lazy[name][1]) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Complete a command's name from the table, importing none of them."""
        from click.shell_completion import CompletionItem

        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        found = [CompletionItem(name, help=self.lazy[name][1]) for name in names]
        return found + click.Command.shell_complete(self, ctx, incomplete)


def load(target: str) -> click.Command:
    """Import a command from ``module:attribute``."""
    from importlib import import_module

    module, _, attribute = target.partition(":")
    command = getattr(import_module(module), attribute)
    if not isinstance(command, click.Command):
        raise TypeError(f"{target} is no click command")
    for parameter in command.params:
        if isinstance(parameter.type, click.types.IntParamType | click.types.FloatParamType):
            parameter.type = _plain(parameter.type)
    return command


def _plain(kind: Any) -> Any:
    """Return a type of numbers in the digits 0 to 9; int and float take 1_0 and digits of all scripts."""
    if "convert" in vars(kind):
        return kind
    strict, convert = copy.copy(kind), kind.convert

    def converted(value: Any, parameter: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and ("_" in value or not value.isascii()):
            kind.fail(f"{value[:40]!r} is no number in the digits 0 to 9", parameter, ctx)
        return convert(value, parameter, ctx)

    strict.convert = converted
    return strict


def program(name: str, about: str, lazy: Mapping[str, LazyCommand], extras: Sequence[str] = ()) -> LazyGroup:
    """Make a program: its lazy commands, ``--version``, and ``completion``; ``extras`` as in its group."""
    group = LazyGroup(
        name=name,
        help=about,
        lazy={**lazy, "completion": COMPLETION},
        extras=extras,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"], "terminal_width": terminal_width()},
    )
    return click.version_option(package_name="yarnctl", prog_name=name)(group)


def terminal_width() -> int:
    """Return how wide help is written; click would import ``shutil`` to find out."""
    try:
        columns = os.get_terminal_size(1).columns
    except OSError:
        columns = HELP_WIDTH
    return max(50, min(columns, HELP_WIDTH) - 2)


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands and options in a shell."""
    from click.shell_completion import get_completion_class

    group = ctx.find_root().command
    name = group.name or ""
    shell_class = get_completion_class(shell)
    if shell_class is None:
        raise BadInput("SHELL", f"{shell!r} is not known", f"use one of {', '.join(SHELLS)}")
    click.echo(shell_class(group, {}, name, completion_variable(name)).source())


def completion_variable(name: str) -> str:
    """Return the variable through which a shell asks for completions: ``_YARNCTL_COMPLETE``."""
    return f"_{name}_COMPLETE".replace("-", "_").upper()


def run(group: click.Group, arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a program and leave with its exit status; this is what ``main`` does."""
    _keep_streams()
    output, watched = sys.stdout, WatchedOutput(sys.stdout)
    sys.stdout = cast(TextIO, watched)
    try:
        status = exit_status_of(group, sys.argv[1:] if arguments is None else list(arguments))
        if not watched.failed:  # else it has been said
            sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe
        status = PIPE_CLOSED
    except BadInput as error:  # of the last flush
        status = complain(str(error), error.exit_status)
    except KeyboardInterrupt:
        status = complain("interrupted", INTERRUPTED)
    finally:
        sys.stdout = output
    _let_go(output)
    raise SystemExit(status)


class WatchedOutput:
    """Standard output while a program runs: its failures are distinguished from those of files."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.failed = False

    def write(self, text: str) -> int:
        """Write; BadInput if it fails for another reason than that the reader is gone."""
        with self._told():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, as above."""
        with self._told():
            self._stream.flush()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            self.failed = True
            raise BadInput("standard output", error.strerror or str(error)) from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _keep_streams() -> None:
    """Open what was closed of stdin, stdout and stderr, so that no file of ours gets its number.

    Writing to a stdout that was closed fails with a message.
    """
    while (taken := os.open(os.devnull, os.O_RDONLY)) < 3:
        if taken == 1:
            sys.stdout = os.fdopen(1, "w", closefd=False)
    os.close(taken)


def _let_go(output: TextIO) -> None:
    """Let what cannot be written go nowhere, or the interpreter would complain at its end."""
    try:
        output.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())


def exit_status_of(group: click.Group, arguments: list[str]) -> int:
    """Run a program; report what went wrong in one line and return the exit status.

    A command may return its own status as an integer; None means done.
    """
    try:
        return invoke(group, arguments)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except YarnctlError as error:
        return complain(str(error), error.exit_status)
    except click.ClickException as error:
        return complain_of_usage(error)
    except ModuleNotFoundError as error:
        extras = group.extras if isinstance(group, LazyGroup) else ()
        lacking = missing_of((error.name or "").partition(".")[0], extras)
        if lacking is None:
            raise
        return complain(str(lacking), lacking.exit_status)
    except (KeyboardInterrupt, click.Abort):
        return complain("interrupted", INTERRUPTED)
    except BrokenPipeError:
        raise
    except OSError as error:
        place = "" if error.filename is None else f"{error.filename}: "
        return complain(f"{place}{error.strerror or error}", BadInput.exit_status)


def invoke(group: click.Group, arguments: list[str]) -> int:
    """Answer a shell that asks for completions, else run the command."""
    name = group.name or ""
    instruction = os.environ.get(completion_variable(name))
    if instruction:
        from click.shell_completion import shell_complete

        return shell_complete(group, {}, name, completion_variable(name), instruction)
    with group.make_context(name, arguments) as context:
        status = group.invoke(context)
    return status if isinstance(status, int) else 0


def complain(message: str, status: int) -> int:
    """Print one line ``error: ...`` on stderr and return ``status``."""
    line = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in " ".join(message.split()))
    with contextlib.suppress(OSError):
        click.echo(f"error: {line}", err=True)
    return status


def complain_of_usage(error: click.ClickException) -> int:
    """Report a command line that cannot be understood: one line, or the help if it was empty."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return BadInput.exit_status
    remedy = f"; see '{context.command_path} --help'" if context is not None else ""
    return complain(error.format_message().rstrip(".") + remedy, BadInput.exit_status)


def output_option(function: Function) -> Function:
    """Give a command ``-o table|json`` and its alias ``--json`` as the argument ``output``."""

    @functools.wraps(function)
    def with_output(*args: Any, output: str, as_json: bool, **kwargs: Any) -> Any:
        return function(*args, output="json" if as_json else output, **kwargs)

    choice = click.Choice(("table", "json"))
    add_json = click.option("--json", "as_json", is_flag=True, help="The same as -o json.")
    add_output = click.option(
        "-o", "output", type=choice, default="table", show_default=True, help="How to print the result."
    )
    return add_output(add_json(with_output))  # type: ignore[return-value]


def print_json(value: object) -> None:
    """Print a value (builtins or records) as JSON, keys in their own order, newline at the end."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    click.echo(text)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None) -> None:
    """Print rows under columns, the title on one line; numbers are right-aligned, None is a dash.

    What is too wide for the terminal is folded or becomes blocks; nothing is cut off (:mod:`yarnctl.tables`).
    """
    from yarnctl.tables import table_text

    click.echo(table_text(columns, rows, title, terminal_columns()), nl=False)


def terminal_columns() -> int | None:
    """Return how wide results are written; None if stdout is no terminal."""
    if not sys.stdout.isatty():
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns


# --- progress ----------------------------------------------------------------------------------


class ProgressBar:
    """Steps of something long. From the first second on, a bar on stderr if that is a terminal.

    What takes less time shows nothing, and does not load rich. ``whole`` is how many steps there will be,
    None if that is not known; a function is called only once the bar is shown.
    """

    def __init__(self, doing: str, whole: int | Callable[[], int | None] | None = None) -> None:
        self.doing = doing
        self.done = 0
        self._whole = whole
        self._bar: Any = None
        self._task: Any = None
        self._begun_s = self._drawn_s = time.monotonic()
        self._over = False
        self._lock = threading.RLock()
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        if not sys.stderr.isatty():
            return self
        if WORTH_SHOWING_S <= 0:
            self.show()
            return self
        self._timer = threading.Timer(WORTH_SHOWING_S, self.show)
        self._timer.daemon = True
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._over = True
            if self._bar is not None:
                self._draw()
                self._bar.stop()

    def step(self, doing: str | None = None, by: int = 1) -> None:
        """Count steps that are done; ``doing`` names the step from now on."""
        self.done += by
        self.doing = doing or self.doing
        if self._bar is not None and (doing or time.monotonic() - self._drawn_s > REDRAWN_S):
            self._draw()

    def expect(self, more: int) -> None:
        """Say that there are so many steps more than was known."""
        self._whole = more + (self._whole if isinstance(self._whole, int) else 0)
        if self._bar is not None:
            self._draw()

    def counted(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items, each a step once it has been dealt with."""
        for item in items:
            yield item
            self.step()

    def show(self) -> None:
        """Show the bar now, unless all is over."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        if callable(self._whole):
            self._whole = self._whole()
        text = TextColumn("{task.description:<22}", markup=False)
        columns = (SpinnerColumn(), text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        bar = Bar(*columns, console=Console(stderr=True), transient=True)
        with self._lock:
            if self._over:
                return
            self._task = bar.add_task(self.doing, total=None)
            bar.tasks[0].start_time = self._begun_s  # not only since it is shown
            bar.start()
            self._bar = bar
            self._draw()

    def _draw(self) -> None:
        self._drawn_s = time.monotonic()
        whole = None if callable(self._whole) else self._whole
        told = {"completed": self.done, "total": whole, "description": self.doing}
        self._bar.update(self._task, refresh=True, **told)


def lines_in(*paths: Path) -> int | None:
    """Return how many lines files hold together; None if one is no plain file, packed, or cannot be read."""
    if not all(path.is_file() and path.suffix != ".gz" for path in paths):
        return None  # what is read from a pipe is gone
    try:
        return sum(map(_lines_in, paths))
    except OSError:
        return None


def _lines_in(path: Path) -> int:
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
