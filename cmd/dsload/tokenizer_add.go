package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/help"
	"github.com/dsload/dsload/internal/shell"
	"github.com/dsload/dsload/internal/tokenizers"
	"github.com/dsload/dsload/tokenize/builtin"
	"github.com/spf13/cobra"
)

// extended is the result of `tokenizer add`.
type extended struct {
	Out         string       `json:"out"`
	Tokens      []addedToken `json:"tokens"`
	VocabSize   int          `json:"vocab_size"`
	Fingerprint string       `json:"fingerprint"`
}

type addedToken struct {
	Token string `json:"token"`
	ID    uint32 `json:"id"`
}

func newTokenizerAddCommand() *cobra.Command {
	var f tokenizerFlags
	var out string
	var asJSON bool
	token := tokenizers.AddedToken{Special: true}
	cmd := &cobra.Command{
		Use:   "add TOKEN...",
		Short: "Make a tokenizer with added tokens, such as those of a chat template",
		Long: `Writes a folder that dsload and transformers load as the tokenizer with these tokens. They have
the ids that add_special_tokens of Hugging Face's tokenizers gives them: a token of the
vocabulary keeps its own, others get the next free ones. The files beside the tokenizer, its
chat template among them, are copied. A model needs an embedding for each new id.`,
		Example: `  dsload tokenizer add '<|im_start|>' '<|im_end|>' --out gpt2-chat
  dsload tokenizer add '<tool>' --tokenizer path/to/model --out with-tools`,
		Args: someArgs("at least one token"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("tokenizer") && isTokenizer(args[0]) {
				return usagef("tokenizer add %[1]s: is a tokenizer, and arguments are tokens; give it as --tokenizer %[1]s, or "+
					"to add a token of this name, name the tokenizer that gets it as --tokenizer", shell.Quote(args[0]))
			}
			var tokens []tokenizers.AddedToken
			for _, token.Content = range args {
				tokens = append(tokens, token)
			}
			r, err := extend(f.name, out, tokens)
			if err != nil {
				return err
			}
			return printResult(cmd.OutOrStdout(), asJSON, r, r.describe())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&out, "out", "o", "", "new folder to write")
	flags.StringVarP(&f.name, "tokenizer", "t", "gpt2", optionUsage("tokenizer"))
	flags.BoolVar(&token.LStrip, "lstrip", false, "a token takes white space before it along")
	flags.BoolVar(&token.RStrip, "rstrip", false, "a token takes white space after it along")
	flags.BoolVar(&token.SingleWord, "single-word", false, "a token is found only between words, not inside of one")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object")
	help.NameValues(flags, "DIR", "out")
	help.InGroup(flags, help.GroupOutput, "out")
	help.InGroup(flags, "Tokens", "lstrip", "rstrip", "single-word")
	likeOption(flags, "tokenizer")
	return cmd
}

// isTokenizer reports whether a token is the name of a tokenizer, on this machine or built in.
func isTokenizer(token string) bool {
	if _, err := os.Stat(token); err != nil {
		return builtin.Has(token)
	}
	_, err := tokenizers.Open(token, tokenizers.Options{})
	return err == nil
}

// extend writes the folder out with a tokenizer that has more tokens.
func extend(name, out string, tokens []tokenizers.AddedToken) (*extended, error) {
	if out == "" {
		return nil, usagef("--out: name the new folder, as in --out with-tokens")
	}
	if err := checkLocal(out); err != nil {
		return nil, usagef("--out %s: %v", out, err)
	}
	entries, err := os.ReadDir(out)
	if err == nil && len(entries) > 0 {
		return nil, usagef("--out %s: the folder exists and is not empty; name a new one", out)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("--out %s: %v; name a new folder", out, err)
	}
	if err := checkWritable(madeIn(filepath.Join(out, "tokenizer.json"))); err != nil {
		return nil, usagef("--out %s: %v", out, err)
	}
	e, err := tokenizers.Add(name, tokens, tokenizers.Options{})
	if err != nil {
		return nil, err
	}
	for _, file := range slices.Sorted(maps.Keys(e.Files)) { // tokenizer.json after what goes with it
		path := filepath.Join(out, file)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = writeAtomically(path, e.Files[file])
		}
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", path, err)
		}
	}
	r := &extended{Out: out, VocabSize: e.Tokenizer.VocabSize(), Fingerprint: e.Tokenizer.Fingerprint()}
	for _, token := range tokens {
		id, _ := e.Tokenizer.ID(token.Content)
		r.Tokens = append(r.Tokens, addedToken{token.Content, id})
	}
	return r, nil
}

func (r *extended) describe() string {
	var b strings.Builder
	for _, t := range r.Tokens {
		fmt.Fprintf(&b, "%d %s\n", t.ID, t.Token)
	}
	fmt.Fprintf(&b, "%s: a tokenizer of %s ids; a model needs as many rows of embeddings:\n"+
		"model.resize_token_embeddings(%d)\nnext: dsload build SOURCE --tokenizer %s\n", r.Out,
		formatCount(int64(r.VocabSize)), r.VocabSize, shell.Quote(r.Out))
	return b.String()
}
