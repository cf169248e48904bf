"""Runs a script as `python SCRIPT ARGUMENTS` does, in a child of a process that has imported what most scripts import: PyTorch
and fp8.torch take seconds, and a test as long again.

usage: PYTHON forked.py SCRIPT [ARGUMENT...]

The first to come starts that process, which ends when nobody came for a while. A script in another environment than its own,
that is about processes or imports, or where no such process starts, is run as it is. One that a signal ends fails.
"""

import atexit
import fcntl
import gc
import glob
import hashlib
import importlib.util
import json
import os
import re
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

IDLE = 90  # Seconds.
IMPORTS = "torch", "torch._dynamo", "fp8", "fp8.torch", "transformers"
# What scripts say that depend on being alone, or first.
ALONE = re.compile(r"sys\.modules|sys\.executable|multiprocessing|RLIMIT|/proc/self|\bjax\b|psutil|sys\.flags|-m fp8|ru_maxrss")


def get_environment():
    """What of the environment a process may depend on."""
    return {key: value for key, value in os.environ.items() if key not in ("_", "PWD", "OLDPWD", "SHLVL")}


def get_files():
    """When what a server has imported of ours was written."""
    package = os.path.dirname(importlib.util.find_spec("fp8").origin)
    files = [os.path.abspath(__file__), *glob.glob(os.path.join(package, "**", "*.*"), recursive=True),
             *glob.glob(os.path.join(os.path.realpath(package), "..", "..", "lib", "*.so*"))]
    return sorted((file, os.stat(file).st_mtime_ns) for file in files)


def get_place():
    """The folder of sockets of this Python and environment, which nobody else can write to."""
    folder = os.path.join(tempfile.gettempdir(), f"fp8-forked-{os.geteuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    status = os.lstat(folder)
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise OSError(f"'{folder}' is not ours alone")
    key = json.dumps([sys.executable, sorted(get_environment().items()), get_files()])
    return os.path.join(folder, hashlib.sha256(key.encode()).hexdigest()[:24])


def run(script, arguments):
    """In the child: as the interpreter would."""
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    try:
        runpy.run_path(script, run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
        code = int(code) if isinstance(code, int) else int(code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    return code


def serve_one(connection):
    message, descriptors, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    request = json.loads(message)
    os.chdir(request["folder"])
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # PyTorch makes a new pool of threads for the one that fork() lost: before threads of autograd ask for it at once.
    sys.modules["torch"].set_num_threads(1)
    code = run(request["script"], request["arguments"])
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        connection.sendall(f"{code}\n".encode())
        os._exit(code)


def serve(place):
    for name in IMPORTS:
        try:
            importlib.import_module(name)
        except ImportError:
            if name in ("torch", "fp8.torch"):
                return
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(place + ".new")
        server.listen(64)
        os.rename(place + ".new", place)
        server.settimeout(IDLE)
        # Nobody waits for children; they say how they ended.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            while True:
                connection, _ = server.accept()
                connection.settimeout(None)
                if os.fork() == 0:
                    server.close()
                    serve_one(connection)
                connection.close()
        except TimeoutError:
            os.unlink(place)


def connect(place):
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(place)
    except OSError:
        connection.close()
        return None
    return connection


def find_server():
    """A connection to the process for this environment, which is started if there is none."""
    place = get_place()
    with open(place + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        connection = connect(place)
        if connection:
            return connection
        for name in (place, place + ".new"):
            if os.path.exists(name):
                os.unlink(name)
        process = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--serve", place], start_new_session=True,
                                   close_fds=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, cwd="/")
        for _ in range(1200):
            connection = connect(place)
            if connection or process.poll() is not None:
                return connection
            time.sleep(0.1)
    return None


def main():
    if sys.argv[1] == "--serve":
        return serve(sys.argv[2])
    script, *arguments = sys.argv[1:]
    with open(script, encoding="utf-8") as file:
        text = file.read()
    connection = None
    if "torch" in text and not ALONE.search(text):
        try:
            connection = find_server()
            if connection:
                request = json.dumps({"script": script, "arguments": arguments, "folder": os.getcwd()}).encode()
                socket.send_fds(connection, [request], [0, 1, 2])
        except OSError:
            connection = None
    if connection is None:
        os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
    answer = b""
    while part := connection.recv(64):
        answer += part
    if not answer.strip():
        print(f"{script}: a signal ended the child, which has no second try", file=sys.stderr)
        return 139
    return int(answer)


if __name__ == "__main__":
    sys.exit(main())
