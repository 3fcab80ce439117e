package setup

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestInterruptibleReadsTheSameBytes(t *testing.T) {
	want := strings.Repeat("some words\n", 50_000)
	for name, r := range map[string]io.Reader{"whole": strings.NewReader(want),
		"halves":        iotest.HalfReader(strings.NewReader(want)),
		"data with EOF": iotest.DataErrReader(strings.NewReader(want))} {
		i := NewInterruptible(t.Context(), r)
		got, err := io.ReadAll(i)
		i.Close()
		if err != nil || string(got) != want {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(want), err)
		}
	}
}
