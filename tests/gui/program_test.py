# SPDX-License-Identifier: Apache-2.0
"""The window as a person uses it: the program itself on an X display, keys from xdotool, the default model. What was
said is read back from the store by the terminal program, what is shown from the display."""
import json
import os
import pathlib
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from program import ProgramTest, installed_models  # noqa: E402

import screen  # noqa: E402

DESKTOP = os.environ["BV_DESKTOP"]
PICTURES = pathlib.Path(os.environ["BV_PICTURES"])
PATIENCE_S = 240
SIZE = (1180, 760)  # the window's first size
LINE_HIGHLIGHT = 0xE1F2F0  # theme.json: light.lineHighlight
DANGER_SOFT = 0xFCEBEA  # theme.json: light.dangerSoft, the ground of an error

PAGES = """// counts pages
#include "cache.h"

static const int kPageSize = 128;

int pageCount(int n_tokens) {
    return (n_tokens + kPageSize - 1) / kPageSize;
}
"""


def xdotool(*words):
    done = subprocess.run(["xdotool", *map(str, words)], capture_output=True, text=True)
    return done.stdout.strip()


class DesktopTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.repo = self.write("repo/cache/pages.cpp", PAGES).parent.parent
        self.write("repo/README.md", "# Pages\n\nHow the cache is cut into pages.\n")
        self.desktop_env = dict(self.env, DISPLAY=os.environ["DISPLAY"], QT_QPA_PLATFORM="xcb")
        self.process = None
        self.addCleanup(self.kill)

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def wait_for(self, what, condition):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            if self.process.poll() is not None:
                log = (self.dir / "stderr").read_text()
                self.fail(f"the window ended with {self.process.returncode} while waiting for {what}: {log}")
            time.sleep(0.1)
        self.keep("failed")
        self.fail(f"waited {PATIENCE_S} s for {what}")

    def open(self, *arguments):
        with open(self.dir / "stderr", "ab") as log:
            self.process = subprocess.Popen([DESKTOP, *map(str, arguments)], env=self.desktop_env, stderr=log)
        find = ("search", "--onlyvisible", "--pid", self.process.pid, "--name", "Belvedere")
        self.window = self.wait_for("a window", lambda: xdotool(*find)).split()[-1]
        xdotool("windowfocus", "--sync", self.window)

    def title(self):
        return xdotool("getwindowname", self.window)

    def key(self, *keys):
        xdotool("key", "--delay", 30, *keys)

    def quit(self):
        self.key("ctrl+q")
        self.assertEqual(self.process.wait(PATIENCE_S), 0, (self.dir / "stderr").read_text())

    def ask(self, question):
        """Types the question and sends it as soon as it can be sent; returns when its turn has ended."""
        before = self.turns()
        self.key("ctrl+l")
        xdotool("type", "--delay", 15, question)

        def is_sent():
            self.key("Return")  # does nothing while the model is loaded or the folder is read
            return len(self.turns()) > len(before)

        self.wait_for("the question to be sent", is_sent)
        # A turn without an end reads as interrupted.
        self.wait_for("the answer", lambda: self.turns()[-1]["end"] != "interrupted")
        return self.turns()[-1]

    def sessions(self):
        return [json.loads(line) for line in self.succeed("sessions", "list", "--json").splitlines()]

    def turns(self):
        """Of the newest session: what was asked, what was answered, and how it ended."""
        sessions = self.sessions()
        turns = []
        for line in self.succeed("sessions", "show", sessions[0]["id"], "--json").splitlines() if sessions else []:
            event = json.loads(line)
            if event["type"] == "turn_started":
                turns.append({"question": event["text"], "answer": "", "end": None})
            elif event["type"] == "text":
                turns[-1]["answer"] += event["text"]
            elif event["type"] == "turn_finished":
                turns[-1]["end"] = event["end"]
        return turns

    def picture(self):
        return screen.capture(*SIZE)

    def keep(self, name):
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.picture().save(PICTURES / f"program_{name}.png")


class MainJob(DesktopTest):
    def test_question_answer_citation_and_the_session_found_again(self):
        self.open("--repo", self.repo)
        turn = self.ask("Where is kPageSize defined?")
        self.assertEqual(turn["question"], "Where is kPageSize defined?")
        self.assertEqual(turn["end"], "done")
        self.assertIn("[cache/pages.cpp:", turn["answer"])
        self.wait_for("the title", lambda: "Where is kPageSize defined?" in self.title())

        # From the composer back into the conversation: the last link or button there is the citation.
        self.assertEqual(self.picture().count(LINE_HIGHLIGHT, left=760), 0)
        self.key("shift+Tab", "Return")
        self.wait_for("the cited lines", lambda: self.picture().count(LINE_HIGHLIGHT, left=760) > 10_000)
        self.keep("source")
        self.quit()

        session = self.sessions()
        self.assertEqual(len(session), 1)
        self.assertEqual(session[0]["repository"], str(self.repo))
        self.open()
        self.wait_for("the session", lambda: "Where is kPageSize defined?" in self.title())
        self.wait_for("the folder", lambda: self.repo.name in self.title())
        second = self.ask("What is the value of kPageSize?")
        self.assertEqual(second["end"], "done")
        self.assertIn("128", second["answer"])
        self.assertEqual(len(self.sessions()), 1)
        self.assertEqual([t["question"][:5] for t in self.turns()], ["Where", "What "])
        self.keep("second_question")
        self.quit()

    def test_killed_while_it_answers_the_session_is_there_and_goes_on(self):
        self.write("repo/big.cpp", "".join(f"int value{i}() {{ return {i} * kPageSize; }}\n" for i in range(120)))
        self.open("--repo", self.repo)
        self.key("ctrl+l")
        xdotool("type", "--delay", 15, "Where is kPageSize defined?")

        def is_running():
            self.key("Return")
            return bool(self.turns())

        self.wait_for("the turn", is_running)
        self.process.kill()
        self.process.wait()
        self.assertEqual(self.turns()[-1]["end"], "interrupted")
        self.open()
        self.wait_for("the session", lambda: "Where is kPageSize defined?" in self.title())
        self.assertEqual(self.ask("Where is pageCount defined?")["end"], "done")
        self.quit()


class BadInput(DesktopTest):
    def run_desktop(self, *arguments, **env):
        return subprocess.run([DESKTOP, *arguments], capture_output=True, text=True, env={**self.env, **env}, timeout=60)

    def test_wrong_usage_and_no_display_are_one_line(self):
        display = os.environ["DISPLAY"]
        for code, arguments, env in (
            (2, ["--frobnicate"], {"DISPLAY": display}),
            (2, ["ask"], {"DISPLAY": display}),
            (1, [], {}),
            (1, [], {"DISPLAY": ":87", "QT_QPA_PLATFORM": "xcb"}),
        ):
            done = self.run_desktop(*arguments, **env)
            self.assertEqual(done.returncode, code, (arguments, done.stderr))
            self.assertEqual(done.stdout, "")
            lines = [line for line in done.stderr.splitlines() if line.startswith("belvedere-desktop: ")]
            self.assertEqual(len(lines), 1, done.stderr)

    def test_damaged_model_is_told_and_the_window_stays(self):
        damaged = self.write("damaged.gguf", b"GGUF" + bytes(64))
        self.open("--model", damaged, "--repo", self.repo)
        self.wait_for("the error", lambda: self.picture().count(DANGER_SOFT) > 5_000)
        self.keep("damaged_model")
        self.quit()

    def test_newer_database_is_told_and_left_alone(self):
        import sqlite3

        database = self.data / "sessions.db"
        with sqlite3.connect(database) as connection:
            connection.execute("PRAGMA user_version = 9999")
        connection.close()
        before = database.read_bytes()
        self.open("--repo", self.repo)
        self.wait_for("the error", lambda: self.picture().count(DANGER_SOFT) > 5_000)
        self.keep("newer_database")
        self.quit()
        self.assertEqual(database.read_bytes(), before)

    def test_folder_that_does_not_exist_is_told(self):
        self.open("--repo", "/no/such/folder")
        self.wait_for("the error", lambda: self.picture().count(DANGER_SOFT) > 5_000)
        self.keep("missing_folder")
        self.quit()


class Startup(DesktopTest):
    def test_probe_measures_the_start_and_the_memory(self):
        (self.data / "models").unlink()  # the goals are those without a model
        done = subprocess.run([DESKTOP, "--startup-probe"], capture_output=True, text=True, env=self.desktop_env, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        facts = dict(line.split("=") for line in done.stdout.split())
        self.assertEqual(set(facts), {"usable_ms", "from_main_ms", "resident_mb", "private_mb"})
        self.assertGreater(float(facts["usable_ms"]), 0)
        print("start of the window:", facts)


if __name__ == "__main__":
    if not any(p.name.endswith("Q4_1.gguf") for p in installed_models().glob("*.gguf")):
        print("skipped: the default model is needed: belvedere models fetch")
    else:
        unittest.main(verbosity=2)
