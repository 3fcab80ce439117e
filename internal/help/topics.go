package help

import (
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/spf13/cobra"
)

// A topic is a page of help that belongs to no command.
type topic struct {
	name, short string
	page        func(build *cobra.Command) *Page
}

// topics returns the topics in the order of help.
func topics() []topic {
	return []topic{
		{"sources", "what can be read, from where, and which files of a folder", sourcesPage},
		{"formats", "what a document is, and how formats are recognized", formatsPage},
		{"templates", "text, pairs and chats from the fields of a record", templatesPage},
		{"filters", "which documents stay, and how duplicates go", filtersPage},
		{"memory", "how the memory cap is kept, divided and chosen", memoryPage},
		{"batches", "the parameters of batches", batchesPage},
		{"exit-codes", "what the exit codes mean", exitPage},
	}
}

// TopicNames returns the names of the topics in the order of help.
func TopicNames() (names []string) {
	for _, t := range topics() {
		names = append(names, t.name)
	}
	return names
}

// Complete completes the arguments of a command help: commands, their commands, and topics.
func Complete(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	found, rest, err := cmd.Root().Find(args)
	if err == nil && len(rest) == 0 {
		for _, c := range found.Commands() {
			if c.IsAvailableCommand() {
				names = append(names, c.Name()+"\t"+c.Short)
			}
		}
	}
	if len(args) == 0 {
		for _, t := range topics() {
			names = append(names, t.name+"\t"+t.short)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// topicLine names the topics.
func topicLine() string {
	return "Topics, with 'dsload help TOPIC': " + strings.Join(TopicNames(), ", ") + "."
}

// Topic returns the page of a topic, or nil. build is the command whose flags some topics list.
func Topic(build *cobra.Command, name string) *Page {
	for _, t := range topics() {
		if t.name == name {
			p := t.page(build)
			p.name, p.short = "dsload help "+t.name, t.short
			return p
		}
	}
	return nil
}

// paragraphs splits a text where a line is empty.
func paragraphs(text string) []string { return strings.Split(strings.TrimSpace(text), "\n\n") }

// optionTable returns the flags of the command build in some groups.
func optionTable(build *cobra.Command, groups ...option.Group) (tables []table) {
	for _, t := range flagTables(build) {
		if slices.Contains(groups, option.Group(t.title)) {
			t.title = "Flags of build: " + strings.ToLower(t.title)
			tables = append(tables, t)
		}
	}
	return tables
}

func sourcesPage(build *cobra.Command) *Page {
	return &Page{
		about: paragraphs(`
A SOURCE is a path, a glob, a folder, an address, "-" for standard input, or a generated corpus. Sources
are streamed in the order in which they are given, not downloaded first; the files of a folder or glob
come in the order of their paths.

Compression (gzip, zstd, bzip2, xz, lz4, snappy), tar and zip archives, and UTF-16 are recognized by
content. The files of an archive are read one by one.

In a quoted glob, ** stands for any number of folders: 'corpus/**/*.txt'. In folders and globs, files
without text (images, archives, programs, PDFs) and files that describe the data (README, LICENSE,
hidden files) are skipped and counted, unless a pattern names them.

Credentials come from the environment or from the files where each service's own programs keep them.
Network faults are retried, and a source that changes during a build is refused.`),
		examples: []string{
			"dsload build corpus/ --out data",
			"dsload build 'corpus/**/*.jsonl.gz' --exclude '*draft*'",
			"dsload build hf://datasets/Salesforce/wikitext/wikitext-103-raw-v1",
			"dsload build s3://bucket/corpus/ --out s3://bucket/data",
			"cat notes.txt | dsload build -",
		},
		tables: append([]table{{title: "Sources", rows: []entry{
			{name: "PATH, FOLDER, GLOB",
				text: "files on this machine; quote globs, so that the shell leaves them to dsload"},
			{name: "-", text: "standard input"},
			{name: "https://HOST/FILE", text: "one file; http:// too"},
			{name: "s3://, gs://, az://", text: "files, folders and globs in a bucket: s3://BUCKET/PATH"},
			{name: "hf://datasets/OWNER/NAME",
				text: "a dataset of the Hugging Face Hub, with @REVISION and /PATH if need be"},
			{name: "synth://wikitext?seed=1", text: "a generated corpus, endless; synth://recipes too. The same seed " +
				"gives the same bytes"},
		}}}, optionTable(build, option.GroupSources)...),
	}
}

func formatsPage(build *cobra.Command) *Page {
	rows := []entry{
		{name: "auto", text: "chosen from the content and name of each input"},
		{name: "text", text: "a document is a line; blank lines are skipped"},
		{name: "document", text: "a document is a file"},
		{name: "wikitext", text: "a document is an article, from one level-one heading (= Title =) to the next"},
		{name: "jsonl", text: "a document is a JSON object on a line"},
		{name: "json", text: "a document is an element of an array: of the file's, or of the one below the key of --records"},
		{name: "csv", text: "a document is a record, with commas, semicolons, tabs or --delimiter between fields"},
		{name: "parquet, arrow", text: "a document is a row"},
		{name: "dataset", text: "a folder of save_to_disk; a document is a row"},
		{name: "chat", text: "a document is a conversation, written by the tokenizer's chat template; --train-on chooses " +
			"whose turns carry loss"},
		{name: "tar", text: "what the format of each file inside says; zip too"},
		{name: "recipes", text: "a document is a record of RecipeNLG's CSV"},
	}
	return &Page{
		about: paragraphs(`
--format says what a document is. It is rarely needed: auto looks at the content and the name of each input
and prints what it found.

--text-field says where in a record the text is: content, a.b[0] to reach inside, title,body to join two
fields with a blank line, text|content to take the first that a record has. The default is "text"; if the first record has no such field, the error names the
one that looks like the text.`),
		examples: []string{
			"dsload survey corpus/       # what its files hold, and the commands that build them",
			"dsload build 'corpus/*.jsonl.gz' --text-field content",
			"dsload build books/ --format document",
			"dsload build table.csv --columns id,text,lang",
			"dsload build corpus.jsonl --preview 3                 # how it would be read; writes nothing",
		},
		tables: []table{{title: "Formats", rows: rows}},
		see:    []string{"docs/formats.md has what happens to files and records that cannot be used."},
	}
}

func templatesPage(build *cobra.Command) *Page {
	return &Page{
		about: paragraphs(`
A template makes text from a record's fields, which are its variables. It is written in Jinja, as chat
templates are, and given as text or in a file. In text on a command line \n is a line break, \t a tab.

  --template '{{ title }}\n\n{{ text | trim }}{% if tags %} ({{ tags | join(", ") }}){% endif %}'

A field that a record lacks makes it a bad record, unless the template asks: {{ note | default('') }} or
{% if note is defined %}. A field whose name is no name in Jinja is {{ record['a-b'] }}.

--prompt and --target make two columns, for encoder-decoder models. With --causal-pairs each pair is one
row, prompt first, with the loss on the target and its end only, for decoder-only models. Rows without any
of the target are dropped. One file makes both with {% block prompt %}…{% endblock %} and a block target.

With --format chat each record is a conversation (messages, ShareGPT, Alpaca, prompt and completion, the
chosen side of a preference), which the tokenizer's chat template, or that of --chat-template, turns into
text, with the loss on what the assistant says.

The tokens of the tokenizer's post-processor surround each document once, or each row with
--special-tokens chunk. --bos and --eos put a token before and after each document, and around each
prompt and target of two columns, unless the post-processor does so.`),
		examples: []string{
			"dsload build pairs.jsonl --prompt 'Q: {{ q }}\\nA: ' --target '{{ a }}' --causal-pairs --eos",
			"dsload build recipes.csv --format recipes --template recipe-seq2seq",
			"dsload build chats.jsonl --format chat --tokenizer path/to/model --train-on last",
		},
		tables: optionTable(build, option.GroupText),
	}
}

func filtersPage(build *cobra.Command) *Page {
	return &Page{
		about: paragraphs(`
A document stays if it meets every condition, in this order: --where, --min-chars and --max-chars, --match,
--no-match, --sample, then --dedup. How many documents each of them left out is counted and printed.

Documents are chosen by their content alone, so the same sources give the same dataset with any number of
workers.`),
		examples: []string{
			"dsload build pages.jsonl --where lang=en --min-chars 200 --dedup near",
			"dsload build pages.parquet --where 'score>=3' --where 'meta.year<2020'",
			"dsload build logs/ --no-match 'DEBUG|TRACE' --sample 0.1",
		},
		tables: optionTable(build, option.GroupFilters),
	}
}

func memoryPage(build *cobra.Command) *Page {
	return &Page{
		about: paragraphs(`
--memory is a hard cap on the whole process, vocabulary included: 256MiB, or half of what the machine or
control group has if that is less. Every buffer whose size depends on the input, the settings or the
vocabulary is leased from it before it exists. A setting that cannot fit is refused before anything is
read, with the smallest cap that would do (exit code 4).

The rows of a dataset do not depend on the cap: more memory makes a build faster, never different.

What needs more memory: more --workers, a larger --max-length with --pack, --dedup near on a large corpus
(which says so when its table is full), a tokenizer with a large vocabulary, and parquet files with large
row groups. 64MiB is enough for most builds with few workers.

For a trainer that runs out of GPU memory, see dsload.memory in the Python package, and 'dsload doctor'.`),
		examples: []string{
			"dsload build --explain-memory --memory 64MiB corpus/      # how the cap is divided; builds nothing",
			"dsload build corpus.jsonl --preview 3                     # the plan, with the first documents",
			"dsload doctor                                             # the limits of this machine",
		},
		tables: optionTable(build, option.GroupLimits),
	}
}

func batchesPage(*cobra.Command) *Page {
	return &Page{
		about: paragraphs(`
'dsload serve' answers GET /v1/batches with an Arrow stream, one record batch for each training batch. Its
parameters choose the order of rows, the shape of batches and the part of each rank. They are the
arguments of dsload.Loader, and the flags of 'dsload which'.`),
		examples: []string{
			"curl --unix-socket dsload.sock 'http://dsload/v1/batches?batch_size=32&bucket=4096' -o b.arrows",
		},
		tables: []table{parameterTable()},
		see:    []string{"docs/feed.md is the whole protocol."},
	}
}

func exitPage(*cobra.Command) *Page {
	return &Page{
		about: []string{"Every command exits with one of these codes. An error is one line on standard error."},
		tables: []table{{title: "Exit codes", rows: []entry{
			{name: "0", text: "done"},
			{name: "1", text: "the work failed"},
			{name: "2", text: "wrong usage"},
			{name: "3", text: "input or data is corrupt"},
			{name: "4", text: "a limit stopped it: memory, disk"},
			{name: "5", text: "interrupted; the same command resumes"},
			{name: "6", text: "the feed or a remote could not be reached"},
		}}},
	}
}
