package remote

import (
	"strings"
	"testing"
)

func TestRedact(t *testing.T) {
	for address, want := range map[string]string{
		"https://host/a/b.txt":                                           "https://host/a/b.txt",
		"https://joe:secret@host:8080/a":                                 "https://host:8080/a",
		"https://joe:se@cret@host/a@b":                                   "https://host/a@b",
		"https://joe:se/cr?et#@host/a":                                   "https://host/a",
		"https://host/a?part=7&download=1#frag":                          "https://host/a?part=7&download=1",
		"https://host/a?file=b%2Fc.jsonl&ref=refs/heads/main":            "https://host/a?file=b%2Fc.jsonl&ref=refs/heads/main",
		"https://host/a?part=7&X-Amz-Signature=secret&X-Amz-Date=1":      "https://host/a?part=7",
		"https://host/a?sv=1&part=7&sig=secret&se=2":                     "https://host/a?part=7",
		"https://host/a?Expires=1&Signature=secret&Key-Pair-Id=x":        "https://host/a",
		"https://host/a?md5=secret&expires=2":                            "https://host/a",
		"https://host/a?hdnea=exp=1~hmac=secret":                         "https://host/a",
		"https://host/a?access_token=secret#secret":                      "https://host/a",
		"https://host/a?Authorization=secret&x-api-key=secret&SIGN=s":    "https://host/a",
		"https://host/a?%74oken=secret":                                  "https://host/a",
		"https://host?token=secret":                                      "https://host",
		"https://joe:secret@ho st/%zz?X-Goog-Credential=secret&format=a": "https://ho st/%zz?format=a",
		"https://host/a?hidden=~0123456789ab":                            "https://host/a?hidden=~0123456789ab",
		"ftp://joe:secret@host/a?token=secret":                           "ftp://host/a",
		"s3://bucket/a-?.jsonl":                                          "s3://bucket/a-?.jsonl",
		"s3://bucket/a#b":                                                "s3://bucket/a#b",
		"s3://key:secret@bucket/a":                                       "s3://bucket/a",
		"az://container/a?sv=1&sig=secret":                               "az://container/a",
		"no address":                                                     "no address",
	} {
		got := Redact(address)
		if got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
		if again := Redact(got); again != got {
			t.Errorf("%s: %s, then %s", address, got, again)
		}
	}
}

// Values that are not known to be harmless are not kept, and addresses that differ in them stay
// different unless they are signatures.
func TestHiddenParameters(t *testing.T) {
	for _, query := range []string{"id=V4LUE", "V4LUE", "c2VjcmV0U0VDUkVU=V4LUE=", "code=V4LUE", "hidden=V4LUE",
		"part=V4LUE%00", "file=https://host/?token=V4LUE", "version=" + strings.Repeat("V4LUE", 20), "id=V4LUE%zz",
		"md5=V4LUE", "part=1&sid=V4LUE;id=V4LUE", "verify=V4LUE"} {
		got := Redact("https://host/a?" + query)
		other := Redact("https://host/a?" + strings.ReplaceAll(query, "V4LUE", "OTHER"))
		if strings.Contains(got, "V4LUE") || !strings.Contains(got, "hidden=~") {
			t.Errorf("%s: %s", query, got)
		}
		if got == other || got == Redact("https://host/b?"+query) || Redact(got) != got {
			t.Errorf("%s: %s, and another is %s", query, got, other)
		}
	}
	if a, b := Redact("https://h/a?x=1&y=2&sig=3"), Redact("https://h/a?sig=4&y=2&x=1"); a != b {
		t.Errorf("signed again, in another order: %s and %s", a, b)
	}
}
