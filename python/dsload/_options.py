"""The options of a build, from the program's own table.

They are flags of "dsload build": True is a flag without a value, a list is a repeated flag; None and False are ignored,
but for eos and bos, of which False means off.
Written by: go test ./cmd/dsload -run TestPythonOptions -update
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, Optional, TypedDict, Union

PathLike = Union[str, "os.PathLike[str]"]


class TextOptions(TypedDict, total=False):
    """What makes rows of sources, except what is a parameter of Loader too."""

    tokenizer: Optional[PathLike]
    tokenizer_pattern: Optional[str]
    format: Optional[Literal["auto", "text", "document", "wikitext", "jsonl", "json", "chat", "csv", "parquet", "arrow", "dataset", "tar", "recipes"]]
    text_field: Optional[str]
    records: Optional[str]
    delimiter: Optional[str]
    include: Union[str, Sequence[str], None]
    exclude: Union[str, Sequence[str], None]
    template: Optional[PathLike]
    prompt: Optional[PathLike]
    target: Optional[PathLike]
    causal_pairs: Optional[bool]
    chat_template: Optional[PathLike]
    train_on: Optional[Literal["assistant", "last", "all"]]
    reasoning: Optional[Literal["keep", "mask", "drop"]]
    split_turns: Optional[bool]
    roles: Union[str, Sequence[str], None]
    date: Optional[str]
    eos: Union[str, int, bool, None]
    bos: Union[str, int, bool, None]
    special_tokens: Optional[Literal["document", "chunk"]]
    where: Union[str, Sequence[str], None]
    match: Union[str, Sequence[str], None]
    no_match: Union[str, Sequence[str], None]
    min_chars: Optional[int]
    max_chars: Optional[int]
    sample: Optional[float]
    dedup: Optional[Literal["none", "exact", "near"]]
    max_examples: Optional[int]
    max_val_examples: Optional[int]
    val: Union[PathLike, Sequence[PathLike], None]
    max_bytes: Union[int, str, None]
    overflow: Optional[Literal["chunk", "truncate", "drop"]]
    shard_bytes: Union[int, str, None]
    on_bad_record: Optional[Literal["fail", "skip"]]


class LoaderOptions(TextOptions, total=False):
    """The options of a Loader of text, besides its own parameters."""

    workers: Optional[int]
    checkpoint_every: Optional[int]
    http: Optional[str]
    notify: Union[str, Sequence[str], None]


class PlanOptions(TextOptions, total=False):
    """The options of dsload.ray.build."""

    columns: Union[str, Sequence[str], None]
    max_tokens: Optional[int]
    max_length: Optional[int]
    pack: Optional[Literal["none", "wrapped", "bfd", "bfd_split", "bestfit", "concat"]]
    checkpoint_every: Optional[int]


class BuildOptions(PlanOptions, total=False):
    """The options of dsload.build.

    Options:
        cached: build into the user's cache, unless it has the dataset of unchanged sources.
        tokenizer: built-in name (gpt2, p50k, cl100k, o200k), folder, tokenizer.json, .tiktoken or .model, or hf://OWNER/NAME.
        tokenizer_pattern: how .tiktoken ranks split text: gpt2, cl100k, o200k, llama3, qwen2, kimi or a regular expression (default: by their number).
        format: auto, text, document, wikitext, jsonl, json, chat, csv, parquet, arrow, dataset, tar or recipes.
        text_field: field that holds the text; a.b[0] reaches inside, a,b joins two with a blank line, and a|b is the first that a record has (default text).
        records: in JSON files, the records are the elements of the array at PATH, as in data or a.b; . is the top (default found where there is one array of objects).
        columns: names of the columns of CSV without a header, as in id,text,lang.
        delimiter: separator of CSV fields (default the comma, semicolon, tab or | that is most frequent in the first line).
        include: in folders and globs, read only files that match this glob, by name or by path from the folder (repeatable).
        exclude: in folders and globs, skip files and folders that match this glob (repeatable).
        template: Jinja template that makes the text of a record, as text ('{{ title }}: {{ text }}') or in a file, or a built-in one (recipe, recipe-seq2seq).
        prompt: Jinja template, as text or in a file, that makes the prompt of a pair; target makes the rest.
        target: Jinja template, as text or in a file, that makes the target of a pair.
        causal_pairs: prompt and target in one row, with the loss on the target only, for decoder-only models.
        chat_template: Jinja file with a chat template, a built-in one (chatml, llama3, qwen, gemma, mistral, phi, deepseek), or the name of one of the tokenizer's (default the tokenizer's own).
        train_on: whose turns carry loss: assistant, last (its last turn) or all.
        reasoning: a model's reasoning: keep, mask (no loss on it) or drop.
        split_turns: a row for each turn of the assistant, with what comes before it, and the loss on that turn only.
        roles: what other roles mean, as in pupil=user,tutor=assistant.
        date: day that a chat template writes as today's, such as 2006-01-02.
        eos: special token after each document, by name or id; without a value, and with pack, the tokenizer's own; off for none.
        bos: special token before each document, as eos takes it.
        special_tokens: where the post-processor adds its tokens: around each document, or chunk for each row.
        where: keep records that meet CONDITION: FIELD=VALUE, or !=, >=, <=, > or <, as in a.b!=x or 'score>=3' (quote > and <; repeatable: values of one field with = are alternatives, else all must hold).
        match: keep documents in which this regular expression matches (RE2 syntax; repeatable: all must match).
        no_match: drop documents in which this regular expression matches (repeatable: any).
        min_chars: drop documents with fewer characters.
        max_chars: drop documents with more characters, 0 for no limit.
        sample: keep this share of the documents, chosen by content hash, such as 0.1.
        dedup: drop copies of earlier documents: none, exact, or near for nearly the same words.
        max_examples: stop after N training examples, 0 for no limit (default 30000 without a SOURCE, else 0).
        max_val_examples: hold out N examples for the split val, by content hash.
        val: build the split val from this source instead of holding examples out.
        max_bytes: stop after SIZE of text, 0 for no limit.
        max_tokens: stop after N tokens, 0 for no limit.
        max_length: longest example in tokens.
        overflow: what happens to the rest of a longer document: chunk, truncate or drop.
        pack: fill rows to max_length: wrapped (cut anywhere), bfd (whole documents, best fit decreasing), bfd_split or none.
        shard_bytes: target size of a shard.
        memory: hard cap on the whole process.
        workers: tokenizing workers, and cores that a build takes (default the CPU quota).
        checkpoint_every: after a kill, repeat at most N examples or a second's work.
        on_bad_record: fail, or skip and list them by file and reason in rejects.jsonl.
        overwrite: start afresh in a folder that holds another build.
        plan: build only one partition of this plan, see 'dsload plan -h'.
        partition: which partition of the plan, as I/N with I from 0 to N-1.
        http: show a live page at ADDR of this machine, such as 127.0.0.1:8080.
        notify: send a message to URL (Discord, Slack, ntfy, or any that takes JSON) when done, failed or resumed; @FILE or env:NAME keeps it secret (repeatable).
        append: add the SOURCEs to the finished dataset in out, as new shards with the same settings.
    """

    cached: Optional[bool]
    memory: Union[int, str, None]
    workers: Optional[int]
    overwrite: Optional[bool]
    plan: Optional[PathLike]
    partition: Optional[str]
    http: Optional[str]
    notify: Union[str, Sequence[str], None]
    append: Optional[bool]
