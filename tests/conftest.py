"""What every test may rely on, wherever the tests are started from.

Law: a test's programs hear interrupts. Who starts the tests in the background of a shell hands them signals
that are ignored, and programs inherit that.
"""

from __future__ import annotations

import signal

for number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
