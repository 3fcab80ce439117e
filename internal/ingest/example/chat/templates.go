package chat

import (
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/jinja"
	"github.com/dsload/dsload/internal/spelling"
	"github.com/dsload/dsload/tokenize"
)

// builtins holds the built-in templates. They were written for dsload after the formats of the models.
//
//go:embed templates/*.jinja
var builtins embed.FS

// Builtins lists the names of the built-in templates.
var Builtins = []string{"chatml", "llama3", "qwen", "gemma", "mistral", "phi", "deepseek"}

// templates holds what a tokenizer's folder says about chats.
type templates struct {
	Named   map[string]string // "default" among them, if there is one
	Special *jinja.Dict       // bos_token, eos_token and so on: variables of every template
	From    string            // the file that holds the templates, "" if there are none
}

const (
	defaultName = "default"
	toolName    = "tool_use"

	maxConfigBytes = 32 << 20
)

// specialNames lists the special tokens that a template sees.
var specialNames = []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}

// findTemplates reads the chat templates of a tokenizer, named by its folder or by a file in it,
// where Hugging Face's transformers looks for them: chat_template.jinja and
// additional_chat_templates, else chat_template of tokenizer_config.json, else chat_template.json.
// A tokenizer without a folder has none.
func findTemplates(tokenizer string) (*templates, error) {
	t := &templates{Named: map[string]string{}, Special: &jinja.Dict{}}
	info, err := os.Stat(tokenizer)
	if err != nil {
		return t, nil // a built-in one
	}
	dir := tokenizer
	if !info.IsDir() {
		dir = filepath.Dir(tokenizer)
	}
	config := map[string]json.RawMessage{}
	if err := readJSON(filepath.Join(dir, "tokenizer_config.json"), &config); err != nil {
		return nil, err
	}
	if err := t.readSpecial(dir, config); err != nil {
		return nil, err
	}
	if err := t.readFiles(dir); err != nil || len(t.Named) > 0 {
		return t, err
	}
	if raw := config["chat_template"]; raw != nil {
		t.From = filepath.Join(dir, "tokenizer_config.json")
		if err := t.readNamed(raw); err != nil || len(t.Named) > 0 {
			return t, err
		}
	}
	older := map[string]json.RawMessage{}
	t.From = filepath.Join(dir, "chat_template.json")
	if err := readJSON(t.From, &older); err != nil {
		return nil, err
	}
	if raw := older["chat_template"]; raw != nil {
		return t, t.readNamed(raw)
	}
	t.From = ""
	return t, nil
}

// readBeside reads a file that a tokenizer's folder may have. It returns nil if there is no file, and
// an error for a pipe, which could be waited for without end.
func readBeside(path string, most int64) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fault.Of(ErrTemplate, "read %s: it is not a regular file; remove it", path)
	}
	return readFile(path, most)
}

// readFile reads a file of at most most bytes. It returns nil if there is no file.
func readFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fault.Of(ErrTooLarge, "read %s: it is longer than %d bytes", path, most)
	}
	return data, err
}

func readJSON(path string, into *map[string]json.RawMessage) error {
	data, err := readBeside(path, maxConfigBytes)
	if err != nil || data == nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fault.Of(ErrTemplate, "read %s: %v", path, err)
	}
	return nil
}

// readNamed reads a template that is a string, or a list of named templates.
func (t *templates) readNamed(raw json.RawMessage) error {
	var one *string
	if json.Unmarshal(raw, &one) == nil {
		if one != nil {
			t.Named[defaultName] = *one
		}
		return nil
	}
	var list []struct{ Name, Template string }
	if json.Unmarshal(raw, &list) == nil {
		for _, named := range list {
			t.Named[named.Name] = named.Template
		}
		return nil
	}
	if err := json.Unmarshal(raw, &t.Named); err != nil {
		return fault.Of(ErrTemplate, "read %s: its chat_template is neither a string nor a list of named templates",
			t.From)
	}
	return nil
}

func (t *templates) readFiles(dir string) error {
	path := filepath.Join(dir, "chat_template.jinja")
	data, err := readBeside(path, jinja.MaxTemplateBytes)
	if err != nil {
		return err
	}
	if data != nil {
		t.Named[defaultName], t.From = string(data), path
	}
	more, err := filepath.Glob(filepath.Join(escapeGlob(dir), "additional_chat_templates", "*.jinja"))
	if err != nil {
		return err
	}
	for _, path := range more {
		data, err := readBeside(path, jinja.MaxTemplateBytes)
		if err != nil {
			return err
		}
		t.Named[strings.TrimSuffix(filepath.Base(path), ".jinja")] = string(data)
		if t.From == "" {
			t.From = path
		}
	}
	return nil
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// readSpecial reads the special tokens from the configuration, else from special_tokens_map.json.
func (t *templates) readSpecial(dir string, config map[string]json.RawMessage) error {
	older := map[string]json.RawMessage{}
	if config["added_tokens_decoder"] == nil {
		if err := readJSON(filepath.Join(dir, "special_tokens_map.json"), &older); err != nil {
			return err
		}
	}
	for _, name := range specialNames {
		token := tokenOf(config[name])
		if token == "" {
			token = tokenOf(older[name])
		}
		if token != "" {
			t.Special.Set(name, token)
		}
	}
	return nil
}

// tokenOf returns the token in raw, a string or an object with its content.
func tokenOf(raw json.RawMessage) string {
	var token string
	if raw == nil || json.Unmarshal(raw, &token) == nil {
		return token
	}
	var object struct{ Content string }
	_ = json.Unmarshal(raw, &object) // anything else is not a token
	return object.Content
}

// choose returns the templates for records without and with tools: the folder's own, unless given
// names another one in the folder, a built-in one or a file. As with tokenizers, a file with the name of a
// built-in one is read if its path has a separator.
func (t *templates) choose(given string) (plain, tools string, err error) {
	if given != "" {
		if named, ok := t.Named[given]; ok {
			return named, named, nil
		}
		if slices.Contains(Builtins, given) {
			data, err := builtins.ReadFile("templates/" + given + ".jinja")
			return string(data), string(data), err
		}
		data, err := readFile(given, jinja.MaxTemplateBytes)
		switch {
		case err != nil:
			return "", "", err
		case data == nil:
			return "", "", fault.Of(ErrTemplate,
				"there is no such file, and neither a built-in template (%s) nor one of the tokenizer's has that name%s; %s",
				strings.Join(Builtins, ", "), t.names(), t.instead(given))
		case len(data) == 0:
			return "", "", fault.Of(ErrTemplate, "the file is empty")
		}
		return string(data), string(data), nil
	}
	plain, ok := t.Named[defaultName]
	tools = plain
	if named, has := t.Named[toolName]; has {
		tools = named
	}
	switch {
	case ok:
		return plain, tools, nil
	case len(t.Named) > 0:
		return "", "", fault.Of(ErrTemplate, "%s has several chat templates and none named %q%s", t.From, defaultName,
			t.names())
	}
	return "", "", errNoTemplate
}

// errNoTemplate means that a tokenizer has no chat template.
var errNoTemplate = fmt.Errorf("%w: there is none", ErrTemplate)

// instead says what to give instead of a name that is not known.
func (t *templates) instead(given string) string {
	near := spelling.Nearest(given, slices.AppendSeq(slices.Clone(Builtins), maps.Keys(t.Named)))
	if near = cmp.Or(near, spelling.NearestFile(given)); near != "" {
		return "did you mean " + near + "?"
	}
	return "give a file, such as the chat_template.jinja in the folder of a model that was trained on chats"
}

// names lists the templates, for errors.
func (t *templates) names() string {
	if len(t.Named) == 0 {
		return ""
	}
	return "; it has " + strings.Join(slices.Sorted(maps.Keys(t.Named)), ", ")
}

// OpenRenderer makes the renderer of conversations for a tokenizer that was opened by name. It
// uses the tokenizer's own chat template unless template gives another: a file, or the name of one
// of the tokenizer's or of a built-in one; o may have the text. date is empty or a day written as 2006-01-02. o says what else is asked for.
func OpenRenderer(t *tokenize.Tokenizer, name, template, date string, o Options) (*Renderer, Options, error) {
	o.IsToken = func(token string) bool { _, ok := t.ID(token); return ok }
	found, err := findTemplates(name)
	if err != nil {
		return nil, o, fmt.Errorf("find the chat template of %s: %w", name, err)
	}
	if o.Template != "" { // it is known
		err = nil
	} else if o.Template, o.ToolTemplate, err = found.choose(template); errors.Is(err, errNoTemplate) {
		return nil, o, fault.BadOption("tokenizer", name,
			"it has no chat template, which turns conversations into text; "+
				"give one as {chat-template}, such as chatml, or a tokenizer whose folder has chat_template.jinja or a chat_template "+
				"in tokenizer_config.json")
	} else if err != nil {
		return nil, o, fault.BadOption("chat-template", template, "%v", err)
	}
	o.Special = found.Special
	if o.Special.Len() == 0 { // no configuration next to it
		for role, id := range map[string]int{"bos_token": t.Special().BOS, "eos_token": t.Special().EOS} {
			if token, ok := t.Token(uint32(max(0, id))); ok && id >= 0 {
				o.Special.Set(role, token)
			}
		}
	}
	if date != "" {
		if o.Date, err = time.Parse(time.DateOnly, date); err != nil {
			return nil, o, fault.BadOption("date", date, "must be a day written as 2006-01-02")
		}
	}
	r, err := NewRenderer(o)
	if err != nil && template != "" {
		return nil, o, fault.BadOption("chat-template", template, "%v", err)
	}
	if err != nil {
		return nil, o, fault.BadOption("tokenizer", name,
			"its chat template in %s does not parse: %v; give another one as {chat-template}", found.From,
			err)
	}
	return r, o, nil
}
