package train

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := marshal(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// marshal is json.Marshal without HTML escapes.
func marshal(v any) ([]byte, error) {
	switch v := v.(type) {
	case object:
		return v.MarshalJSON()
	case int:
		return fmt.Append(nil, v), nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// byID returns tokens as members whose values are their ids.
func byID(tokens []string) object {
	out := make(object, len(tokens))
	for id, token := range tokens {
		out[id] = member{token, id}
	}
	return out
}

// writeFile returns the tokenizer.json with these components. special has the ids of special tokens.
func writeFile(special object, normalizer, preTokenizer, postProcessor, decoder, model any) ([]byte, error) {
	added := make([]any, len(special))
	for i, s := range special {
		added[i] = object{{"id", s.value}, {"content", s.name}, {"single_word", false}, {"lstrip", false}, {"rstrip", false},
			{"normalized", false}, {"special", true}}
	}
	file := object{
		{"version", "1.0"}, {"truncation", nil}, {"padding", nil}, {"added_tokens", added}, {"normalizer", normalizer},
		{"pre_tokenizer", preTokenizer}, {"post_processor", postProcessor}, {"decoder", decoder}, {"model", model},
	}
	data, err := file.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("train: write tokenizer.json: %w", err)
	}
	return append(data, '\n'), nil
}
