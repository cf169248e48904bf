"""Commands with a time limit."""

import os
import signal
import subprocess
import time
from dataclasses import dataclass

TAIL = 4000  # Characters of a command's output that are kept as a message.


@dataclass
class Outcome:
    """How a command ended; its code is None when it ran out of time."""

    code: "int | None"
    seconds: float
    output: str
    errors: str

    def message(self, limit):
        text = (self.output + self.errors).strip()[-TAIL:]
        if self.code is None:
            return f"not done after {limit:.0f} s\n{text}".strip()
        return text


def run(command, limit, env=None, cwd=None):
    """Runs a command in a process group of its own, of which nothing is left
    when this returns."""
    start = time.monotonic()
    try:
        process = subprocess.Popen(
            [str(word) for word in command], env=env, cwd=cwd, text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True)
    except OSError as error:
        return Outcome(127, 0.0, "", str(error))
    code = None
    try:
        output, errors = process.communicate(timeout=max(limit, 0.0))
        code = process.returncode
    except subprocess.TimeoutExpired:
        end(process)
        output, errors = process.communicate()
    end(process)
    return Outcome(code, time.monotonic() - start, output, errors)


def end(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
