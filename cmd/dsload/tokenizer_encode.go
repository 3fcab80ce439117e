package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/help"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/tokenize"
	"github.com/dsload/dsload/tokenize/wellformed"
	"github.com/spf13/cobra"
)

// codecFlags are the flags of encode and decode.
type codecFlags struct {
	tokenizer         tokenizerFlags
	asJSON, noSpecial bool
}

func (f *codecFlags) add(cmd *cobra.Command, noSpecial string) {
	flags := cmd.Flags()
	flags.SortFlags = false
	f.tokenizer.add(cmd)
	flags.BoolVar(&f.asJSON, "json", false, "JSON lines instead of plain ones, in and out")
	flags.BoolVar(&f.noSpecial, "no-special", false, noSpecial)
	help.InGroup(flags, string(option.GroupText), "no-special")
}

func newTokenizerEncodeCommand() *cobra.Command {
	var f codecFlags
	explain := false
	cmd := &cobra.Command{
		Use:   "encode",
		Short: "Turn lines of text on stdin into token ids on stdout",
		Long: `Each line of stdin is a text; its ids are printed on one line, separated by spaces.
With --json a line is an object {"text": …} and becomes {"ids": […], "tokens": […]}.
With --explain it shows the text with the borders of its tokens: in colours on a
terminal, otherwise, or if NO_COLOR is set, with │ between them; then the ids, joined by
+ if tokens share a character.`,
		Example: `  echo 'Hello, world' | dsload tokenizer encode
  echo 'unbelievable' | dsload tokenizer encode --explain --tokenizer cl100k
  dsload tokenizer encode --json --tokenizer tokenizer.json --no-special < texts.jsonl`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if explain {
				return runExplain(cmd, &f)
			}
			return runEncode(cmd, &f)
		},
	}
	f.add(cmd, "omit the special tokens that the tokenizer adds to a text")
	cmd.Flags().BoolVar(&explain, "explain", false, "show the text with the borders of its tokens")
	help.InGroup(cmd.Flags(), help.GroupOutput, "explain")
	return cmd
}

func runEncode(cmd *cobra.Command, f *codecFlags) error {
	t, err := openTokenizer(&f.tokenizer, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	enc := t.NewEncoder(tokenize.EncoderOptions{})
	var ids []uint32
	return eachLine(cmd, func(n int, line []byte, out *bufio.Writer) error {
		text := line
		if f.asJSON {
			var in struct {
				Text *string `json:"text"`
			}
			var wrong *json.UnmarshalTypeError
			switch err := json.Unmarshal(line, &in); {
			case errors.As(err, &wrong) && wrong.Field != "":
				return fault.Kindf(fault.Corrupt, `encode: stdin line %d: "text" is of type %s, not a string`, n, wrong.Value)
			case errors.As(err, &wrong):
				return fault.Kindf(fault.Corrupt, `encode: stdin line %d: want an object {"text": "…"}, got %.40q`, n, line)
			case err != nil:
				return fault.Kindf(fault.Corrupt, "encode: stdin line %d: %w", n, err)
			case in.Text == nil:
				return fault.Kindf(fault.Corrupt, `encode: stdin line %d: no field "text"`, n)
			}
			text = []byte(*in.Text)
		}
		ids = ids[:0]
		if !f.noSpecial {
			ids = append(ids, t.Prefix()...)
		}
		ids = enc.AppendTokens(ids, text)
		if !f.noSpecial {
			ids = append(ids, t.Suffix()...)
		}
		if !f.asJSON {
			_, err := out.Write(appendIDs(out.AvailableBuffer(), ids, ' '))
			return err
		}
		return writeEncoded(out, t, ids)
	})
}

// writeEncoded writes one JSON object without a line end.
func writeEncoded(out *bufio.Writer, t *tokenize.Tokenizer, ids []uint32) error {
	b := append(out.AvailableBuffer(), `{"ids":[`...)
	b = appendIDs(b, ids, ',')
	b = append(b, `],"tokens":[`...)
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		token, _ := t.Token(id)
		quoted, err := json.Marshal(token)
		if err != nil {
			return err
		}
		b = append(b, quoted...)
	}
	_, err := out.Write(append(b, "]}"...))
	return err
}

func appendIDs(b []byte, ids []uint32, separator byte) []byte {
	for i, id := range ids {
		if i > 0 {
			b = append(b, separator)
		}
		b = strconv.AppendUint(b, uint64(id), 10)
	}
	return b
}

func newTokenizerDecodeCommand() *cobra.Command {
	var f codecFlags
	cmd := &cobra.Command{
		Use:   "decode",
		Short: "Turn token ids on stdin into text on stdout",
		Long: `Each line of stdin holds ids separated by spaces; their text is printed on a line.
With --json a line is an object {"ids": […]} and becomes {"text": …}.`,
		Example: `  echo '15496 11 995' | dsload tokenizer decode
  dsload tokenizer decode --json --no-special < ids.jsonl`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDecode(cmd, &f) },
	}
	f.add(cmd, "leave out special tokens")
	return cmd
}

func runDecode(cmd *cobra.Command, f *codecFlags) error {
	t, err := openTokenizer(&f.tokenizer, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	var text []byte
	return eachLine(cmd, func(n int, line []byte, out *bufio.Writer) error {
		ids, err := parseIDs(line, f.asJSON)
		if err != nil {
			return fault.Kindf(fault.Corrupt, "decode: stdin line %d: %w", n, err)
		}
		for _, id := range ids {
			if _, ok := t.Token(id); !ok {
				return fault.Kindf(fault.Corrupt, "decode: stdin line %d: %s has no token with id %d: "+
					"its ids are 0 to %d", n, t.Name(), id, t.VocabSize()-1)
			}
		}
		text = t.AppendText(text[:0], ids, tokenize.DecodeOptions{SkipSpecial: f.noSpecial})
		if !f.asJSON {
			_, err = out.Write(text)
			return err
		}
		quoted, err := json.Marshal(string(text))
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, `{"text":%s}`, quoted)
		return err
	})
}

func parseIDs(line []byte, asJSON bool) ([]uint32, error) {
	if asJSON {
		var in struct{ IDs *[]json.RawMessage }
		var wrong *json.UnmarshalTypeError
		err := json.Unmarshal(line, &in)
		switch {
		case errors.As(err, &wrong):
			return nil, fmt.Errorf(`want an object {"ids": […]}, got %.40q`, line)
		case err != nil:
			return nil, err
		case in.IDs == nil:
			return nil, fmt.Errorf(`no field "ids"`)
		}
		ids := make([]uint32, 0, len(*in.IDs))
		for _, value := range *in.IDs {
			id, err := strconv.ParseUint(string(value), 10, 32)
			if err != nil {
				return nil, fmt.Errorf("%.20s is not an id: want a whole number from 0 on", value)
			}
			ids = append(ids, uint32(id))
		}
		return ids, nil
	}
	var ids []uint32
	for _, field := range bytes.Fields(line) {
		id, err := strconv.ParseUint(string(field), 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%.20q is not an id: want whole numbers with spaces between them", field)
		}
		ids = append(ids, uint32(id))
	}
	return ids, nil
}

// eachLine calls do for each line of stdin, as UTF-8, without its end and numbered from 1, and ends each line
// of output. It flushes the output whenever no more input is buffered, so that a program on a pipe
// gets its answer before it asks again.
func eachLine(cmd *cobra.Command, do func(n int, line []byte, out *bufio.Writer) error) error {
	in := bufio.NewReaderSize(cmd.InOrStdin(), 256<<10)
	out := bufio.NewWriterSize(cmd.OutOrStdout(), 256<<10)
	var line, clean []byte
	told := false
	for n := 1; ; n++ {
		line = line[:0]
		var err error
		for {
			var part []byte
			part, err = in.ReadSlice('\n')
			if len(line)+len(part) > maxTextBytes {
				return errors.Join(fault.Kindf(fault.Limit,
					"read stdin: line %d has more than %s; break it, or use 'dsload build'",
					n, formatSize(maxTextBytes)), out.Flush())
			}
			line = append(line, part...)
			if err != bufio.ErrBufferFull {
				break
			}
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("read stdin: %w", err)
		}
		if len(line) > 0 {
			var replaced int
			clean, replaced = wellformed.Append(clean[:0], bytes.TrimSuffix(line, []byte("\n")))
			if replaced > 0 && !told {
				told = true
				warn(cmd.ErrOrStderr(), fmt.Sprintf("stdin line %d: not UTF-8; what is not, there and later, becomes U+FFFD, as "+
					"in a build", n))
			}
			if err := do(n, clean, out); err != nil {
				return errors.Join(err, out.Flush()) // keep the output of earlier lines
			}
			if err := out.WriteByte('\n'); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return out.Flush()
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
		if err := cmd.Context().Err(); err != nil {
			return err
		}
	}
}
