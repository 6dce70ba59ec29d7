# SPDX-License-Identifier: Apache-2.0
"""tokens, render and logits: their fixed form, on files of tests/data."""
import array
import json
import pathlib
import shutil
import struct
import unittest

from program import ProgramTest

DATA = pathlib.Path(__file__).parent.parent / "data"


def read_safetensors(path):
    """{name: (shape, numbers)} of f32 and i32 tensors."""
    raw = pathlib.Path(path).read_bytes()
    (n_header,) = struct.unpack_from("<Q", raw)
    tensors = {}
    for name, entry in json.loads(raw[8 : 8 + n_header]).items():
        if name != "__metadata__" and entry["dtype"] in ("F32", "I32"):
            begin, end = entry["data_offsets"]
            kind = "f" if entry["dtype"] == "F32" else "i"
            tensors[name] = entry["shape"], array.array(kind, raw[8 + n_header + begin : 8 + n_header + end])
    return tensors


class Tokens(ProgramTest):
    def test_ids_of_a_tokenizer_json_are_those_of_the_reference(self):
        vectors = json.loads((DATA / "tokenizers/smollm.vectors.json").read_text())
        vectors = vectors["vectors"] if isinstance(vectors, dict) else vectors
        for vector in vectors[:12]:
            text, ids = (vector["text"], vector["ids"]) if isinstance(vector, dict) else vector
            self.assertEqual(json.loads(self.succeed("tokens", "--model", DATA / "tokenizers/smollm.json", stdin=text)), ids)

    def test_last_newline_counts_and_plain_text_makes_no_special_token(self):
        model = DATA / "tokenizers/smollm.json"
        with_newline = json.loads(self.succeed("tokens", "--model", model, stdin="a\n"))
        self.assertEqual(len(with_newline), len(json.loads(self.succeed("tokens", "--model", model, stdin="a"))) + 1)
        special = json.loads(self.succeed("tokens", "--model", model, stdin="<|im_end|>"))
        plain = json.loads(self.succeed("tokens", "--model", model, "--plain", stdin="<|im_end|>"))
        self.assertEqual(len(special), 1)
        self.assertGreater(len(plain), 1)


class Render(ProgramTest):
    TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}>{% endif %}"

    def test_bytes_are_exact_and_no_newline_is_added(self):
        template = self.write("t.jinja", self.TEMPLATE)
        data = self.write("in.json", '{"messages": [{"role": "user", "content": "Héllo"}]}')
        self.assertEqual(self.succeed("render", "--template", template, "--input", data), "<user>Héllo>")

    def test_failing_template_exits_with_1_and_one_line(self):
        template = self.write("t.jinja", "{{ raise_exception('roles must\nalternate') }}")
        data = self.write("in.json", '{"messages": []}')
        self.assertIn("alternate", self.fail_with(1, "render", "--template", template, "--input", data))


class Logits(ProgramTest):
    def test_logits_of_a_small_llama_are_those_of_the_reference(self):
        folder = DATA / "inference/family-llama-tied"
        expected = folder / "expected.safetensors"
        raw = expected.read_bytes()
        (n_header,) = struct.unpack_from("<Q", raw)
        entry = json.loads(raw[8 : 8 + n_header])["input_ids"]
        begin, end = (8 + n_header + offset for offset in entry["data_offsets"])
        ids = list(array.array("q" if entry["dtype"] == "I64" else "i", raw[begin:end]))
        out = self.dir / "logits.safetensors"
        self.succeed("logits", "--model", folder / "model-BF16.gguf", "--input", self.write("ids.json", json.dumps(ids)),
                     "--output", out, "--chunk", 64)
        shape, values = read_safetensors(out)["logits"]
        expected_shape, expected_values = read_safetensors(expected)["logits"]
        self.assertEqual(shape, expected_shape[-2:])
        worst = max(abs(a - b) for a, b in zip(values, expected_values))
        self.assertLess(worst, 2e-3)

    def test_all_writes_what_the_layers_computed(self):
        folder = DATA / "inference/m3-tiny"
        expected = read_safetensors(folder / "expected.safetensors")
        out = self.dir / "all.safetensors"
        ids = self.write("ids.json", json.dumps(list(expected["input_ids"][1])))
        self.succeed("logits", "--model", folder / "model-BF16.gguf", "--input", ids, "--output", out, "--all")
        written = read_safetensors(out)
        for name in ("logits", "hidden", "selected_blocks", "expert_ids", "expert_weights"):
            with self.subTest(name):
                shape, values = written[name]
                self.assertEqual(shape, expected[name][0])
                self.assertLess(max(abs(a - b) for a, b in zip(values, expected[name][1])), 1e-3)

    def test_images_and_a_clip_are_seen_where_their_placeholders_stand(self):
        folder = DATA / "inference/m3-vl-tiny"
        expected = read_safetensors(folder / "expected.safetensors")
        clip = self.dir / "clip"
        clip.mkdir()
        for frame in folder.glob("frame*.png"):
            shutil.copy(frame, clip)
        out = self.dir / "vision.safetensors"
        ids = self.write("ids.json", json.dumps(list(expected["input_ids"][1])))
        arguments = ["logits", "--model", folder / "model-BF16.gguf", "--input", ids, "--output", out,
                     "--image", folder / "image0.png", "--image", folder / "image1.png"]
        self.succeed(*arguments, "--video", clip)
        written = read_safetensors(out)
        for name in ("logits", "tower_images", "projected_images", "tower_video", "projected_video"):
            with self.subTest(name):
                shape, values = written[name]
                self.assertEqual(shape, expected[name][0])
                self.assertLess(max(abs(a - b) for a, b in zip(values, expected[name][1])), 1e-3)
        self.assertIn("take 12 tokens", self.fail_with(2, *arguments[:-2]))
        broken = self.write("broken.png", "no image")
        self.assertIn("no PNG", self.fail_with(1, *arguments, "--image", broken))

    def test_id_outside_the_vocabulary_is_refused(self):
        folder = DATA / "inference/family-llama-tied"
        ids = self.write("ids.json", "[1, 99999999]")
        self.assertIn("99999999", self.fail_with(2, "logits", "--model", folder / "model-BF16.gguf", "--input", ids,
                                                 "--output", self.dir / "o.safetensors"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
