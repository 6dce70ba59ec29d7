#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The end-to-end check with the default model: makes the questions, lets the program answer them, scores the answers.

    ask_questions.py --program build/dev/bin/belvedere [--few] [--attention msa|dense] [--context 8192] [--count 180]
                     [--work FOLDER]

Sources: this project, pybind11 2.13.6 (C++) and requests 2.32.3 (Python), the packages fetched with pip. --few asks about 20
questions, of two groups of this project's own sources, and fetches nothing. Longer contexts hold more files, so that less of
each is about the question.
"""
import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
PACKAGES = {"pybind11": ("2.13.6", "pybind11/include"), "requests": ("2.32.3", "src")}


def fetch(work):
    """NAME=FOLDER of each package."""
    for name, (version, folder) in PACKAGES.items():
        root = work / f"{name}-{version}"
        if not root.exists():
            subprocess.run(
                [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:",
                 "--dest", str(work), f"{name}=={version}"],
                check=True,
            )
            with tarfile.open(next(work.glob(f"{name}-{version}*.tar.gz"))) as archive:
                archive.extractall(work)
        yield f"{name}={root / folder if (root / folder).exists() else root}"


def run(command, **more):
    print("+", " ".join(map(str, command)), file=sys.stderr)
    return subprocess.run([str(word) for word in command], check=True, **more)


def print_speed(usage):
    """Of the first question of each group, which computes the context, and of all answers."""
    first = [u for u in usage if u["n_cached"] < u["n_prompt"] / 2]
    answers = [u for u in usage if u["n_generated"] > 1]
    if first and answers:
        tokens = statistics.median(u["n_prompt"] for u in first)
        seconds = statistics.median(u["first_token_seconds"] for u in first)
        warm = statistics.median(u["first_token_seconds"] for u in usage if u not in first)
        speed = sum(u["n_generated"] for u in answers) / sum(u["generation_seconds"] for u in answers)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"context of {tokens:.0f} tokens: first token after {seconds:.1f} s, with the context known {warm:.2f} s, "
              f"generation {speed:.0f} tokens/s, peak memory {peak:.0f} MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--attention", choices=["msa", "dense"], help="default: the program's own")
    parser.add_argument("--context", type=int, default=8192, help="tokens of sources in a context")
    parser.add_argument("--count", type=int, help="questions, at least; default: 180, few: 15")
    parser.add_argument("--work", type=pathlib.Path, help="kept between runs; default: a temporary folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="belvedere-questions-") as temporary:
        work = arguments.work or pathlib.Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        questions, groups, answers = work / "questions.json", work / "groups", work / "answers.jsonl"
        # --few draws from a folder of two contexts' size, so that a group has its full share of questions.
        sources = [f"belvedere={PROJECT / 'app/headless'}"] if arguments.few else [f"belvedere={PROJECT}", *fetch(work)]
        run([sys.executable, HERE / "make_questions.py", "--output", questions, "--split", groups,
             "--count", arguments.count or (15 if arguments.few else 180), "--context", arguments.context, *sources])
        settings = ["--budget", arguments.context]
        settings += ["--attention", arguments.attention] if arguments.attention else []
        with open(answers, "wb") as out:
            for group in json.loads(questions.read_text())["groups"]:
                if group["questions"]:
                    run([arguments.program, "ask", "--repo", groups / group["name"], "--json",
                         "--questions", groups / f"{group['name']}.jsonl", *settings], stdout=out)
        events = [json.loads(line) for line in answers.read_text().splitlines()]
        usage = [event for event in events if event["type"] == "usage"]
        print(f"{len(usage)} answers; prompt tokens {sum(u['n_prompt'] for u in usage)}, "
              f"of these from the cache {sum(u['n_cached'] for u in usage)}")
        print_speed(usage)
        # Of the few questions only four or so are about absent names: one wrong answer must not decide.
        minimum = ["--min-refused", "60"] if arguments.few else []
        score = [sys.executable, HERE / "score_answers.py", questions, answers, "--show-wrong", *minimum]
        return subprocess.run(score).returncode


if __name__ == "__main__":
    sys.exit(main())
