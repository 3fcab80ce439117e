package chat

import (
	"strings"
	"testing"
)

// markedRecord is a record of two questions and answers with marks in and beside the messages.
func markedRecord(first, user, second, beside string) string {
	return `{"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "BAD"` + first + `}, ` +
		`{"role": "user", "content": "Q"` + user + `}, {"role": "assistant", "content": "GOOD"` + second + `}]` + beside + `}`
}

func TestMarks(t *testing.T) {
	for _, c := range []struct{ first, user, second, beside, want string }{
		{"", "", "", "", "BAD GOOD"},
		{`, "train": false`, "", "", "", "GOOD"},
		{`, "trainable": false`, "", `, "trainable": true`, "", "GOOD"},
		{`, "loss": 0`, `, "loss": null`, `, "loss": 1`, "", "GOOD"},
		{`, "loss_mask": 0.0`, `, "loss_mask": 0`, `, "loss_mask": 1.0`, "", "GOOD"},
		{`, "weight": "0"`, "", `, "weight": "1.0"`, "", "GOOD"},
		{`, "train": true, "weight": 0`, "", "", "", "GOOD"},
		{"", "", "", `, "loss_mask": [0, 0, 0, 1]`, "GOOD"},
		{"", "", "", `, "train": "[false, false, false, true]"`, "GOOD"},
		{"", "", "", `, "system": "S", "weight": [0, 0, 0, 1]`, "GOOD"},
		{"", "", "", `, "weight": 1, "loss": 2.31, "train": "yes"`, "BAD GOOD"},
		{"", "", "", `, "weight": 0`, ""},
		{`, "weight": 0.5`, "", "", "", `!message 2 of "messages": "weight" is the number 0.5,`},
		{`, "loss": "some"`, "", "", "", `!"loss" is the string "some"`},
		{`, "train_detail": [{"begin_offset": 0}]`, "", "", "", "!marks parts of it"},
		{"", `, "train": true`, "", "", "!message 3 of \"messages\": it is marked to be trained on and its role is user"},
		{"", "", "", `, "loss_mask": [1, 1]`, `!"loss_mask" has 2 values for 4 messages`},
		{"", "", "", `, "loss_mask": [0, 0, 0, 0.1]`, `!message 4: "loss_mask" is the number 0.1`},
		{"", "", "", `, "weight": "2 kg"`, "BAD GOOD"},
		{"", "", "", `, "loss_weight": "2"`, `!"loss_weight" is the string "2"`},
		{"", "", "", `, "weight": 0.25`, `!"weight" is the number 0.25`},
	} {
		record := markedRecord(c.first, c.user, c.second, c.beside)
		_, trained, failed := rendered(t, Options{Template: strict}, record)
		if want, fails := strings.CutPrefix(c.want, "!"); fails {
			if !strings.Contains(failed, want) {
				t.Errorf("%s\n got %q %s\nwant the error %s", record, trained, failed, want)
			}
			continue
		}
		if got := strings.TrimSpace(strings.ReplaceAll(trained, "</s>", " ")); got != c.want {
			t.Errorf("%s\n got %q %s\nwant %q", record, got, failed, c.want)
		}
	}
	turns := `{"conversation": [{"human": "Q", "assistant": "BAD"}, {"human": "Q", "assistant": "GOOD"}], "loss_mask": [0, 1]}`
	if _, trained, failed := rendered(t, Options{Template: strict}, turns); trained != "GOOD</s>" {
		t.Errorf("got %q %s", trained, failed)
	}
	all := Options{Template: strict, TrainOn: TrainAll}
	if _, _, failed := rendered(t, all, markedRecord(`, "train": false`, "", "", "")); !strings.Contains(failed, "every token") {
		t.Error(failed)
	}
	if _, _, failed := rendered(t, all, markedRecord("", `, "train": true`, "", "")); failed != "" {
		t.Error(failed)
	}
}

func TestBadAnswers(t *testing.T) {
	for record, want := range map[string]string{
		`{"prompt": "Q", "completion": "A", "label": true}`:                           "",
		`{"prompt": "Q", "completion": "A", "label": 0}`:                              "",
		`{"prompt": "Q", "completion": "A", "label": "False"}`:                        "`where` label=True",
		`{"prompt": "Q", "completion": "A", "label": false}`:                          "`where` label=true",
		`{"messages": [{"role": "assistant", "content": "A"}], "kto_tag": false}`:     "`where` kto_tag=true",
		`{"messages": [{"role": "assistant", "content": "A"}], "label": "sentiment"}`: "",
	} {
		if _, _, failed := rendered(t, Options{Template: strict}, record); !strings.Contains(failed, want) ||
			(failed == "") != (want == "") {
			t.Errorf("%s: %s, want %s", record, failed, want)
		}
	}
	for record, want := range map[string]bool{`{"prompt": "Q", "chosen": "A", "rejected": "B"}`: true,
		`{"messages": [{"role": "assistant", "content": "A"}], "rejected_response": "B"}`: true,
		`{"prompt": "Q", "chosen": "A"}`: false} {
		var got Text
		if err := newTestRenderer(t, Options{Template: strict}).NewWorker(nil).Render(&got, []byte(record)); err != nil ||
			got.RejectedLeftOut != want {
			t.Errorf("%s: %v, %v", record, got.RejectedLeftOut, err)
		}
	}
}
