package archtest

import (
	"strings"
	"testing"
)

// tokenizerRooms lists, for the packages of tokenize/internal, those of them that may not be
// imported: a file is read into a Spec, a pipeline is made of it, and nothing flows back.
var tokenizerRooms = map[string][]string{
	"engine":   {"hf", "tiktoken", "spmodel", "pipeline", "reference"},
	"spec":     {"hf", "tiktoken", "spmodel", "pipeline", "engine", "reference"},
	"hf":       {"tiktoken", "spmodel", "pipeline", "engine", "reference"},
	"tiktoken": {"hf", "spmodel", "pipeline", "engine", "reference"},
	"spmodel":  {"hf", "tiktoken", "pipeline", "engine", "reference"},
	"pipeline": {"hf", "tiktoken", "reference"},
	"known":    {"hf", "tiktoken", "spmodel", "pipeline", "engine", "spec", "reference"},
}

// TestTokenizerFlowsFromFileToSpecToEngine checks the imports within tokenize/internal, and that of
// the engines only the plain models know a Spec.
func TestTokenizerFlowsFromFileToSpecToEngine(t *testing.T) {
	const inside = module + "/tokenize/internal/"
	checked := 0
	for _, p := range list(t, inside+"...") {
		from := strings.TrimPrefix(p.ImportPath, inside)
		room, _, _ := strings.Cut(from, "/")
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, inside)
			if !ours {
				continue
			}
			checked++
			for _, not := range tokenizerRooms[room] {
				if to == not || strings.HasPrefix(to, not+"/") {
					t.Errorf("tokenize/internal/%s imports %s: a tokenizer flows from file to Spec to engine", from, to)
				}
			}
			if to == "spec" && room == "engine" && from != "engine/plain" {
				t.Errorf("tokenize/internal/%s imports spec: its own Config describes all it needs", from)
			}
		}
	}
	if checked == 0 {
		t.Error("no import was checked")
	}
}
