"""Processes that make ready side by side, compile for example, and are timed one after the other
while the rest sleep, so that no number is of a machine which does something else."""

import json
import multiprocessing
import sys
import time
import traceback


def _work(connection, function, arguments):
    """A process's: says that it is ready, waits for its turn, or for several, and sends the record."""
    def wait():
        connection.send(None)
        connection.recv()

    try:
        record = function(*arguments, wait)
    except Exception as error:  # One fails: the others are still of interest.
        traceback.print_exc()
        record = {"error": f"{type(error).__name__}: {error}"[:2000]}
    connection.send(record)


class _Run:
    def __init__(self, function, arguments):
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, function, arguments))
        self.process.start()
        theirs.close()

    def receive(self, seconds):
        """What the process sends next: None, or a record at the end of it."""
        record = {"error": f"took more than {seconds:.0f} s"}
        if self.connection.poll(seconds):
            try:
                record = self.connection.recv()
            except EOFError:
                self.process.join()
                record = {"error": f"ended with {self.process.exitcode}"}
        if record is not None:
            self.process.join(1)
            self.process.kill()
        return record

    def finish(self, seconds):
        self.connection.send(None)
        return self.receive(seconds)


def run(function, units, jobs, seconds=86400, limit=300):
    """Yields lists of (unit, record), for `jobs` units at a time, until `seconds` are over.

    `function` gets a unit's arguments and one more, which it calls when it is ready to be timed, and
    again wherever others are to have a turn before it goes on; it returns a dictionary. `limit` is seconds for each unit to become ready, and to be timed. What
    failed has the record {"error": ...}.
    """
    end = time.monotonic() + seconds
    for i in range(0, len(units), jobs):
        if time.monotonic() > end:
            print(f"no time was left from unit {i} of {len(units)} on", flush=True)
            return
        some, found = units[i:i + jobs], []
        runs, ready = [_Run(function, unit) for unit in some], time.monotonic() + limit
        records = [each.receive(max(0, ready - time.monotonic())) for each in runs]
        while None in records:
            records = [each.finish(limit) if record is None else record
                       for each, record in zip(runs, records, strict=True)]
        for unit, record in zip(some, records, strict=True):
            found.append((unit, record))
            print(*unit[:2], json.dumps(record)[:600], file=sys.stderr, flush=True)
        yield found
