# SPDX-License-Identifier: Apache-2.0
"""Runs the program as a user would: its own data folder, the default model, real files. Standard library only."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["BV_PROGRAM"]


def installed_models():
    """The folder of the user's data that holds the default model."""
    data = os.environ.get("BV_DATA_DIR")
    if not data:
        share = os.environ.get("XDG_DATA_HOME") or os.path.join(os.environ["HOME"], ".local/share")
        data = os.path.join(share, "belvedere")
    return pathlib.Path(data) / "models"


class ProgramTest(unittest.TestCase):
    """A temporary data folder that shares the models of the real one; no display, no config file."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="belvedere-e2e-")
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        self.data = self.dir / "data"
        self.data.mkdir()
        (self.data / "models").symlink_to(installed_models())
        self.env = dict(os.environ, BV_DATA_DIR=str(self.data), XDG_CONFIG_HOME=str(self.dir / "config"))
        for name in ("DISPLAY", "WAYLAND_DISPLAY", "BV_LOG"):
            self.env.pop(name, None)

    def run_program(self, *arguments, stdin="", timeout=300):
        return subprocess.run(
            [PROGRAM, *map(str, arguments)], input=stdin.encode(), capture_output=True, env=self.env, timeout=timeout
        )

    def succeed(self, *arguments, stdin=""):
        done = self.run_program(*arguments, stdin=stdin)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode()

    def fail_with(self, code, *arguments, stdin=""):
        """One line on standard error, nothing on standard output; returns the line."""
        done = self.run_program(*arguments, stdin=stdin)
        error = done.stderr.decode()
        self.assertEqual(done.returncode, code, error)
        self.assertEqual(done.stdout, b"")
        self.assertTrue(error.startswith("belvedere: "), error)
        self.assertEqual(error.count("\n"), 1, error)
        return error

    def events(self, *arguments, stdin=""):
        return [json.loads(line) for line in self.succeed(*arguments, "--json", stdin=stdin).splitlines()]

    def write(self, name, text):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path


def of_type(events, name):
    return [event for event in events if event["type"] == name]


def text_of(events):
    return "".join(event["text"] for event in of_type(events, "text"))
