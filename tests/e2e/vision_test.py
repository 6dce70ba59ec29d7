# SPDX-License-Identifier: Apache-2.0
"""Images in questions: a small multimodal model, given a chat template with places for them."""
import json
import pathlib
import shutil
import struct
import unittest

from program import ProgramTest, of_type

FOLDER = pathlib.Path(__file__).parent.parent / "data/inference/m3-vl-tiny"
TEMPLATE = (
    "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
    "{% if p.type == 'image' %}]<]image[>[{% elif p.type == 'text' %}{{ p.text }}{% endif %}{% endfor %}{% endif %}{% endfor %}"
)


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def with_template(gguf, template):
    """The bytes of a GGUF file with one key more."""
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
    n_tensors, n_keys = struct.unpack_from("<QQ", gguf, 8)

    def skip_text(at):
        return at + 8 + struct.unpack_from("<Q", gguf, at)[0]

    def skip_value(at, kind):
        if kind == 8:
            return skip_text(at)
        if kind != 9:
            return at + sizes[kind]
        kind, count = struct.unpack_from("<IQ", gguf, at)
        at += 12
        for _ in range(count):
            at = skip_value(at, kind)
        return at

    at = 24
    for _ in range(n_keys):
        at = skip_text(at)
        at = skip_value(at + 4, struct.unpack_from("<I", gguf, at)[0])
    infos = at
    for _ in range(n_tensors):
        at = skip_text(at)
        at += 4 + 8 * struct.unpack_from("<I", gguf, at)[0] + 4 + 8
    data = -(-at // 32) * 32
    head = gguf[:16] + struct.pack("<Q", n_keys + 1) + gguf[24:infos]
    head += text("tokenizer.chat_template") + struct.pack("<I", 8) + text(template) + gguf[infos:at]
    return head + bytes(-len(head) % 32) + gguf[data:]


class Vision(ProgramTest):
    def setUp(self):
        super().setUp()
        self.model = self.dir / "model.gguf"
        self.model.write_bytes(with_template((FOLDER / "model-BF16.gguf").read_bytes(), TEMPLATE))
        shutil.copy(FOLDER / "mmproj-BF16.gguf", self.dir)

    def ask(self, *more):
        return "ask", "--model", self.model, "--max-tokens", 4, "--image", FOLDER / "image0.png", *more

    def test_the_same_image_in_two_questions_is_encoded_once(self):
        questions = "".join(json.dumps({"id": name, "text": "Question " + name}) + "\n" for name in "ab")
        events = self.events(*self.ask("--questions", self.write("questions.jsonl", questions)))
        usage = of_type(events, "usage")
        self.assertEqual(len(usage), 2)
        self.assertEqual((usage[0]["n_images"], usage[0]["n_encoded"]), (1, 1))
        self.assertEqual(usage[1]["n_encoded"], 0)

    def test_the_cost_is_told_before(self):
        done = self.run_program(*self.ask("What is it?"))
        self.assertIn("12 tokens", done.stderr.decode())

    def test_hostile_images_are_refused_with_the_numbers(self):
        bomb = self.dir / "bomb.png"
        header = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", 100_000, 100_000) + bytes(9)
        bomb.write_bytes(header)
        self.assertIn("100000 x 100000", self.fail_with(2, *self.ask("What?", "--image", bomb)))
        cut = self.dir / "cut.png"
        cut.write_bytes((FOLDER / "image0.png").read_bytes()[:500])
        self.assertIn("damaged or cut off", self.fail_with(1, *self.ask("What?", "--image", cut)))

    def test_a_text_model_refuses_images(self):
        (self.dir / "mmproj-BF16.gguf").unlink()
        self.assertIn("reads text only", self.fail_with(2, *self.ask("What?")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
