# SPDX-License-Identifier: Apache-2.0
"""The main job from the terminal: attach a repository, ask, get a cited answer, come back to the session."""
import unittest

from program import ProgramTest, of_type, text_of

PAGES = """// counts pages
#include "cache.h"

static const int kPageSize = 128;

int pageCount(int n_tokens) {
    return (n_tokens + kPageSize - 1) / kPageSize;
}
"""
SIZE = '''import os


def size(path):
    """Bytes of a file."""
    return os.path.getsize(path)
'''


class MainJob(ProgramTest):
    def setUp(self):
        super().setUp()
        self.repo = self.write("repo/cache/pages.cpp", PAGES).parent.parent
        self.write("repo/tools/size.py", SIZE)

    def ask(self, question, *more):
        return self.events("ask", "--repo", self.repo, question, *more)

    def test_answer_cites_the_piece_that_defines_the_constant(self):
        events = self.ask("Where is kPageSize defined?")
        citations = of_type(events, "citations")[0]["citations"]
        self.assertIn("cache/pages.cpp", [c["path"] for c in citations if c["is_in_context"]], text_of(events))
        context = of_type(events, "context")[-1]
        self.assertEqual((context["n_files"], context["n_files_total"]), (2, 2))
        self.assertEqual(events[-1]["type"], "turn_finished")
        self.assertEqual(events[-1]["end"], "done")

    def test_absent_name_is_refused(self):
        self.assertIn("could not find", text_of(self.ask("Where is kCompressionLevel defined?")))

    def test_greedy_answer_is_the_same_again_and_for_any_number_of_threads(self):
        answers = {text_of(self.ask("What is the value of kPageSize?", "--threads", n)) for n in (1, 2, 2)}
        self.assertEqual(len(answers), 1, answers)

    def test_second_question_reuses_the_prefix(self):
        session = of_type(self.ask("Where is kPageSize defined?"), "turn_started")[0]["session"]
        events = self.events("chat", "--session", session, stdin="What does size take?\nWhere is pageCount defined?\n")
        first, second = of_type(events, "usage")
        self.assertGreater(second["n_cached"], first["n_prompt"] * 0.9)
        self.assertLess(second["n_prefilled"], 100)
        print(f"second question: {second['n_cached']} of {second['n_prompt']} prompt tokens from the cache")

    def test_text_output_lists_the_context(self):
        text = self.succeed("ask", "--repo", self.repo, "Where is kPageSize defined?")
        self.assertIn("In the context: 2 of 2 files", text)
        self.assertIn("cache/pages.cpp:1-", text)

    def test_snapshot_serves_the_next_process(self):
        kept = self.dir / "pages.snapshot"
        first = self.ask("Where is kPageSize defined?", "--snapshot", kept)
        self.assertTrue(kept.exists())
        again = self.ask("Where is kPageSize defined?", "--snapshot", kept)
        self.assertEqual(text_of(first), text_of(again))
        usage = of_type(again, "usage")[0]
        self.assertLess(usage["n_prefilled"], usage["n_prompt"] * 0.1)
        print(f"from the snapshot: {usage['n_cached']} of {usage['n_prompt']} prompt tokens")
        with open(kept, "r+b") as file:
            file.seek(300)
            file.write(b"?")
        self.assertEqual(text_of(self.ask("Where is kPageSize defined?", "--snapshot", kept)), text_of(first))
        notes = self.write("notes.txt", "not to be replaced" * 100)
        self.assertIn("notes.txt", self.fail_with(2, "ask", "--snapshot", notes, "hello"))
        self.assertIn("not to be replaced", notes.read_text())

    def test_session_is_kept_found_and_deleted(self):
        session = of_type(self.ask("Where is kPageSize defined?"), "turn_started")[0]["session"]
        self.assertIn(session, self.succeed("sessions", "list"))
        self.assertIn("kPageSize", self.succeed("sessions", "show", session))
        self.assertIn(session, self.succeed("sessions", "search", "kpagesi"))
        self.succeed("sessions", "rename", session, "pages", "and", "sizes")
        self.assertIn("pages and sizes", self.succeed("sessions", "list"))
        self.fail_with(2, "sessions", "delete", session)
        self.succeed("sessions", "delete", session, "--yes")
        self.assertNotIn(session, self.succeed("sessions", "list"))

    def test_chat_without_a_terminal_reads_to_the_end_of_input(self):
        text = self.succeed("chat", "--repo", self.repo, stdin="Where is kPageSize defined?\n\nWhat does size take?\n")
        self.assertEqual(text.count("In the context:"), 2, text)

    def test_ingest_lists_what_was_skipped_and_why(self):
        self.write("repo/logo.png", b"\x89PNG\r\n\x1a\n\0\0\0\0")
        self.write("repo/.env", "API_KEY=abcdef0123456789\n")
        text = self.succeed("ingest", self.repo)
        self.assertIn("2 files", text)
        self.assertRegex(text, r"logo\.png")
        self.assertRegex(text, r"\.env")


class BadInput(ProgramTest):
    def test_wrong_usage_exits_with_2(self):
        self.fail_with(2, "ask")
        self.fail_with(2, "frobnicate")
        self.fail_with(2, "ask", "--budget", "many", "question")
        self.assertIn("--input", self.fail_with(2, "logits", "--model", "m.gguf"))

    def test_missing_files_are_named(self):
        self.assertIn("/no/such.gguf", self.fail_with(1, "ask", "--model", "/no/such.gguf", "hello"))
        self.assertIn("/no/such/repo", self.fail_with(1, "ask", "--repo", "/no/such/repo", "hello"))
        self.assertIn("/no/such.json", self.fail_with(1, "tokens", "--model", "/no/such.json"))

    def test_foreign_and_truncated_models_are_refused(self):
        text = self.write("notes.gguf", "version https://example.org/spec\noid sha256:00\n")
        self.assertIn("notes.gguf", self.fail_with(1, "ask", "--model", text, "hello"))
        whole = next(p for p in (self.data / "models").iterdir() if p.name.endswith("Q4_1.gguf"))
        with open(whole, "rb") as file:
            cut = self.write("cut.gguf", file.read(50_000_000))
        self.assertIn("cut.gguf", self.fail_with(1, "ask", "--model", cut, "hello"))

    def test_missing_default_model_says_how_to_get_it(self):
        (self.data / "models").unlink()
        self.assertIn("models fetch", self.fail_with(1, "ask", "hello"))

    def test_broken_config_lists_every_problem(self):
        self.write("config/belvedere/config.json", '{"engine": {"threads": "x"}, "appearance": 1}')
        error = self.fail_with(2, "ask", "hello")
        self.assertIn("engine.threads", error)
        self.assertIn("appearance", error)

    def test_database_of_a_newer_version_is_left_alone(self):
        import sqlite3

        database = self.data / "sessions.db"
        with sqlite3.connect(database) as connection:
            connection.execute("PRAGMA user_version = 9999")
        connection.close()
        before = database.read_bytes()
        self.assertIn("newer", self.fail_with(1, "sessions", "list"))
        self.assertEqual(database.read_bytes(), before)

    def test_damaged_database_is_named_and_left_alone(self):
        database = self.data / "sessions.db"
        database.write_bytes(b"this is no database" * 1000)
        before = database.read_bytes()
        self.assertIn("sessions.db", self.fail_with(1, "sessions", "list"))
        self.assertEqual(database.read_bytes(), before)

    def test_too_long_a_question_is_refused_with_the_numbers(self):
        error = self.fail_with(1, "ask", "--context", 512, "word " * 2000)
        self.assertRegex(error, r"\d{4}.*512")


if __name__ == "__main__":
    unittest.main(verbosity=2)
