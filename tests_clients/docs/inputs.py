"""Small inputs for the pages: what their commands read, under the names that the pages use."""

import json
import shutil
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq

WORDS = "river stone lamp harbour winter letter garden engine table silver window forest".split()
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.tool_calls %}{{ m.tool_calls | tojson }}{% endif %}"
    "{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def sentence(i):
    return " ".join(WORDS[(i * k + k) % len(WORDS)] for k in range(1, 4 + i % 7)) + f" {i}."


def texts(n, first=0):
    return [sentence(i) for i in range(first, first + n)]


def json_lines(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")


def conversation(i):
    call = {"type": "function", "function": {"name": "weather", "arguments": {"city": WORDS[i % 12]}}}
    return {
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": {}}}],
        "messages": [
            {"role": "user", "content": f"Will it rain, number {i}?"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "name": "weather", "content": "rain, 12 degrees"},
            {"role": "assistant", "content": "Yes, take an umbrella."},
        ],
    }


def make(folder, dsload):
    """Fills a folder with the inputs that every page may use."""
    languages = ["en", "de", "en", "fr"]
    records = [{"id": i, "text": t, "content": t, "title": f"Title {i}", "lang": languages[i % 4], "score": i % 10, "meta": {"year": 2010 + i % 16}}
               for i, t in enumerate(texts(400))]
    for name, part in (("corpus.jsonl", records), ("corpus/a.jsonl", records[:200]), ("corpus/b.jsonl", records[200:])):
        json_lines(folder / name, part)
    json_lines(folder / "wiki.jsonl", [{"text": t} for t in texts(300)])
    json_lines(folder / "code.jsonl", [{"text": f"def f{i}(): return {i}"} for i in range(300)])
    json_lines(folder / "first.jsonl", [{"text": t} for t in texts(300)])
    json_lines(folder / "second.jsonl", [{"text": t} for t in texts(100, 290)])
    json_lines(folder / "chats.jsonl", [conversation(i) for i in range(200)])
    for i in range(3):
        (folder / f"corpus/{i}.txt").write_text("\n".join(texts(30, 30 * i)) + "\n")
    for lang, year in (("en", 2019), ("en", 2021), ("de", 2021)):
        json_lines(folder / f"by-language/lang={lang}/year={year}/part-0.jsonl", [{"text": t} for t in texts(20, year)])
    articles = [{"title": f"Title {i}", "paragraphs": [{"context": t, "qas": []} for t in texts(5, i)]} for i in range(20)]
    (folder / "train-v2.0.json").write_text(json.dumps({"version": "v2.0", "data": articles}))
    (folder / "corpus.txt").write_text("\n".join(texts(100)) + "\n")
    (folder / "books").mkdir()
    for i in range(4):
        (folder / f"books/{i}.txt").write_text("\n\n".join(texts(600, 600 * i)) + "\n")
    (folder / "wiki.train.raw").write_text("".join(f" \n = Title {i} = \n \n {' '.join(texts(20, 20 * i))} \n" for i in range(60)))
    (folder / "recipes.csv").write_text("".join(
        [",title,ingredients,directions,link,source,NER\n"]
        + [f'{i},Tea {i},"[""1 lemon"", ""{i} tsp. honey""]","[""Boil the water."", ""Stir.""]",x,y,"[""lemon""]"\n' for i in range(20)]))
    long = [{**r, "text": " ".join(texts(12, r["id"]))} for r in records]
    table = pa.Table.from_pylist(long)
    pq.write_table(table, folder / "pages.parquet")
    pq.write_table(table, folder / "corpus/part.parquet")
    lines = "".join(json.dumps(r) + "\n" for r in long).encode()
    for name, codec in (("pages.jsonl.zst", "zstd"), ("corpus/c.jsonl.zst", "zstd"), ("filtered/part.jsonl.gz", "gzip")):
        (folder / name).parent.mkdir(exist_ok=True)
        with pa.CompressedOutputStream(str(folder / name), codec) as out:
            out.write(lines)
    json_lines(folder / "pairs.jsonl", [{"q": f"What is {i}?", "a": sentence(i), "title": f"Title {i}", "body": sentence(i)} for i in range(50)])
    model(folder, dsload)


def more(folder):
    """Adds what only the examples of help read."""
    json_lines(folder / "more.jsonl", [{"text": t} for t in texts(50, 5000)])
    json_lines(folder / "pages.jsonl", [{"text": " ".join(texts(12, i)), "lang": "en"} for i in range(50)])
    (folder / "table.csv").write_text("".join(f'{i},"{sentence(i)}",en\n' for i in range(50)))
    (folder / "logs").mkdir()
    (folder / "logs/a.txt").write_text("\n".join(texts(300)) + "\n")
    (folder / "wiki.train.txt").write_bytes((folder / "wiki.train.raw").read_bytes())
    shutil.copy(folder / "filtered/part.jsonl.gz", folder / "corpus/part.jsonl.gz")
    shutil.copy(folder / "filtered/part.jsonl.gz", folder / "data.jsonl.gz")
    shutil.copy(folder / "path/to/model/tokenizer.json", folder / "path/to/tokenizer.json")
    (folder / "sweep.yaml").write_text("method: grid\nparameters:\n  model: {value: gpt2}\n  batch_size: {values: [4, 8]}\n")
    record(folder)


def record(folder):
    """memory.jsonl, as MemoryRecorder writes it."""
    phases = ("load", "forward", "backward", "optimizer")
    steps = [{"type": "snapshot", "time": i, "step": 1 + i // 4, "phase": phases[i % 4], "allocated": 10 + i, "reserved": 40, "peak": 20 + i}
             for i in range(16)]
    json_lines(folder / "memory.jsonl", [{"type": "start", "version": 1, "time": 0, "device_total": 100}, *steps, {"type": "end", "time": 16, "steps": 4}])


def model(folder, dsload):
    """path/to/model: a tokenizer of 300 tokens with a chat template, as a model's folder has them."""
    where = folder / "path/to/model"
    where.mkdir(parents=True)
    special = ["<|im_end|>", "<|im_start|>"]
    subprocess.run([dsload, "tokenizer", "train", "corpus.txt", "--vocab-size", "300", *(w for s in special for w in ("--special", s)),
                    "--out", "path/to/model"], cwd=folder, check=True, capture_output=True)
    (where / "chat_template.jinja").write_text(CHATML)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": special[0], "pad_token": special[0]}
    (where / "tokenizer_config.json").write_text(json.dumps(config))


TINY = "n_layer=1, n_head=2, n_embd=8, bos_token_id=0, eos_token_id=0"

# What a page may take as given: shell commands, Python for its interpreter, or a function that writes into its folder.
GIVEN = {
    "data": ("sh", "dsload build corpus.jsonl --eos --max-val-examples 20 --out data"),
    "chats": ("sh", "dsload build chats.jsonl --format chat --tokenizer path/to/model --out chats --overwrite"),
    "model": ("python", f"import torch, transformers\nmodel = transformers.GPT2LMHeadModel(transformers.GPT2Config({TINY}))"),
    "model for chats": ("python", f"import transformers\nmodel = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=300, {TINY}))"),
    "path/to/model": ("python", f"import transformers\ntransformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=300, {TINY})).save_pretrained('path/to/model')"),
    "optimizer": ("python", "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)"),
    "rows": ("python", "import datasets\nrows = datasets.Dataset.from_json('corpus.jsonl')\nrows.save_to_disk('saved')"),
    "memory.jsonl": ("function", record),
    "train.py": ("python", """open("train.py", "w").write('''
import torch, dsload
with dsload.Loader("data", batch_size=4) as loader:
    model = torch.nn.Embedding(loader.manifest["tokenizer"]["vocab_size"], 4)
    optimizer = torch.optim.AdamW(model.parameters())
    for step, batch in zip(range(4), loader):
        model(batch["input_ids"]).square().mean().backward()
        optimizer.step(); optimizer.zero_grad()
''')"""),
}
