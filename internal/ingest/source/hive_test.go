package source

import (
	"fmt"
	"strings"
	"testing"
)

// equals is a condition that a folder gives a field a value.
func equals(field, want string) Condition {
	return Condition{Field: field, Names: []string{field}, Folder: func(value string, null bool) bool {
		return !null && value == want
	}}
}

func TestFoldersDecide(t *testing.T) {
	o := Options{Conditions: []Condition{equals("lang", "en"), equals("a b", "x/y"), equals("n", "")}}
	for uri, want := range map[string]string{
		"lang=en/part-0.jsonl":                 "1 false",
		"data/lang=de/part-0.jsonl":            "1 true",
		"/data/lang=de/x/lang=en/p.jsonl":      "1 false",
		"lang=en.jsonl":                        "0 false", // a file
		"data/lang=/p":                         "1 true",
		"data/=en/lang/LANG=en/p":              "0 false",
		"data/a%20b=x%2Fy/lang=en/p":           "11 false",
		"data/lang=%zz/p":                      "1 true",
		"data/n=/p":                            "100 false",
		"data/n=__HIVE_DEFAULT_PARTITION__/p":  "100 true",
		"s3://bucket/lang=en/year=1/p":         "1 false",
		"https://host/lang=de/p?a=/lang=en/x":  "1 true",
		"https://host/get/p?x=/lang=de/p":      "0 false",
		"hf://datasets/o/n@rev/data/lang=en/p": "1 false",
		"-":                                    "0 false",
	} {
		decided, drops := o.judge(uri)
		if got := fmt.Sprintf("%b %v", decided, drops); got != want {
			t.Errorf("%s: %s, want %s", uri, got, want)
		}
	}
}

// Objects in folders that conditions leave out are never asked for.
func TestFoldersOfABucket(t *testing.T) {
	srv := startBucket(t, "c/lang=en/a.txt", "c/lang=en/b.txt", "c/lang=de/c.txt", "c/lang=de/d.txt",
		"c/lang=e%6E/e.txt")
	set := openSet(t, Options{Args: []string{"s3://bucket/c", "s3://bucket/c/lang=de/c.txt"},
		Conditions: []Condition{equals("lang", "en")}})
	records, err := readFrom(t, set, Position{})
	if err != nil || len(records) != 3 {
		t.Errorf("%d records, %v", len(records), err)
	}
	for _, r := range records {
		if r.Decided != 1 {
			t.Errorf("%s: conditions %b are decided", r.data, r.Decided)
		}
	}
	for _, r := range srv.Requests() {
		if strings.Contains(r.Path, "lang=de") && r.Method == "GET" {
			t.Errorf("%s %s", r.Method, r.Path)
		}
	}
	if notes := set.Notes(); len(notes) != 1 || !strings.Contains(notes[0].String(), "leaves out 3 files unread") {
		t.Errorf("notes %v", notes)
	}
}
