#!/usr/bin/env python3
"""The tenant's command-line dispatcher: hands its command line to the service and prints what comes back.

Everything else, help included, is decided on the other side of the socket that lies beside this file.
"""

import json
import os
import socket
import sys

WRONG_COMMAND_LINE = 2
NOT_CONNECTED = 3


def fail(code, text):
    sys.stderr.write("concierge: " + text + "\n")
    sys.exit(code)


def standard_input(argv):
    """Read only when a word asks for it, so that a script's own input is left alone."""
    if not any(word == "-" or (word.startswith("--") and word.endswith("=-")) for word in argv):
        return None
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError:
        fail(WRONG_COMMAND_LINE, "standard input is not UTF-8 text.")


def ask(request):
    line = json.dumps(request, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        try:
            connection.sendall(line)
        except OSError:
            pass  # Refused before all of it was read: the answer says why.
        with connection.makefile("rb") as answer:
            return json.loads(answer.read())


def main():
    argv = sys.argv[1:]
    request = {"command": os.environ.get("CONCIERGE_COMMAND", ""), "argv": argv, "stdin": standard_input(argv)}
    try:
        reply = ask(request)
    except (OSError, ValueError):
        fail(NOT_CONNECTED, "nobody answers; the turn that this belongs to may be over.")
    try:
        sys.stderr.buffer.write(reply["stderr"].encode("utf-8", "replace"))
        sys.stdout.buffer.write(reply["stdout"].encode("utf-8", "replace"))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe, which ends the output as for any other program.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(reply["exitCode"])


main()
