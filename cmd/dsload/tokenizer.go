package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/tokenizers"
	"github.com/dsload/dsload/tokenize"
	"github.com/dsload/dsload/tokenize/builtin"
	"github.com/spf13/cobra"
)

func newTokenizerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tokenizer",
		Short: "Encode, decode, render chats, inspect, digest, extend and train tokenizers",
		Example: `  echo 'Hello, world' | dsload tokenizer encode
  dsload tokenizer inspect path/to/tokenizer.json
  dsload tokenizer train corpus/*.txt --vocab-size 32000 --out my-tokenizer`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTokenizerEncodeCommand(), newTokenizerDecodeCommand(), newTokenizerChatCommand(),
		newTokenizerDigestCommand(), newTokenizerInspectCommand(), newTokenizerAddCommand(), newTokenizerTrainCommand())
	return cmd
}

// tokenizerFlags name a tokenizer.
type tokenizerFlags struct{ name, pattern string }

func (f *tokenizerFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.name, "tokenizer", "t", option.Defaults().Tokenizer, optionUsage("tokenizer"))
	cmd.Flags().StringVar(&f.pattern, "tokenizer-pattern", "", optionUsage("tokenizer-pattern"))
	likeOption(cmd.Flags(), "tokenizer", "tokenizer-pattern")
}

// openTokenizer loads a tokenizer and warns on stderr about parts of its file that have no effect.
func openTokenizer(f *tokenizerFlags, stderr io.Writer) (*tokenize.Tokenizer, error) {
	t, err := tokenizers.Open(f.name, tokenizers.Options{Pattern: f.pattern})
	if err != nil {
		return nil, err
	}
	for _, w := range t.Warnings() {
		warn(stderr, w)
	}
	return t, nil
}

func newTokenizerInspectCommand() *cobra.Command {
	var asJSON bool
	var f tokenizerFlags
	cmd := &cobra.Command{
		Use:   "inspect [TOKENIZER]",
		Short: "Show what a tokenizer is made of",
		Example: `  dsload tokenizer inspect
  dsload tokenizer inspect path/to/tokenizer.json --json`,
		Args: numArgs(0, 1, "one tokenizer"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				f.name = args[0]
			}
			t, err := tokenizers.Open(f.name, tokenizers.Options{Pattern: f.pattern})
			if err != nil {
				return err
			}
			d := t.Details().Describe()
			return printResult(cmd.OutOrStdout(), asJSON, d, describeTokenizer(t, d))
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	f.add(cmd)
	cmd.ValidArgsFunction = cobra.FixedCompletions(builtin.Names(), cobra.ShellCompDirectiveDefault)
	return cmd
}

func describeTokenizer(t *tokenize.Tokenizer, d tokenize.Description) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-15s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("name", "%s", d.Name)
	line("family", "%s", d.Family)
	line("engine", "%s", d.Engine)
	line("vocabulary", "%s ids, %s added tokens", formatCount(int64(d.VocabSize)), formatCount(int64(d.AddedTokens)))
	for _, c := range []struct{ name, value string }{
		{"normalizer", d.Components.Normalizer}, {"pre-tokenizer", d.Components.PreTokenizer},
		{"model", d.Components.Model}, {"post-processor", d.Components.PostProcessor}, {"decoder", d.Components.Decoder},
	} {
		if c.value != "" {
			line(c.name, "%s", c.value)
		}
	}
	s := d.Special
	for _, c := range []struct {
		name string
		id   int
	}{{"bos", s.BOS}, {"eos", s.EOS}, {"pad", s.PAD}, {"unk", s.UNK}, {"cls", s.CLS}, {"sep", s.SEP}, {"mask",
		s.MASK}} {
		if c.id >= 0 {
			token, _ := t.Token(uint32(c.id))
			line(c.name, "%d %q", c.id, token)
		}
	}
	line("around a text", "%v … %v", d.Prefix, d.Suffix)
	line("memory", "%s of tables, %s an encoder", formatSize(d.ResidentBytes), formatSize(d.EncoderBytes))
	line("fingerprint", "%s", d.Fingerprint)
	if d.Truncation > 0 {
		line("truncation", "at %s tokens, without effect here: --max-length decides", formatCount(int64(d.Truncation)))
	}
	for _, w := range d.Warnings {
		line("warning", "%s", w)
	}
	return b.String()
}
