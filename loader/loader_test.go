package loader

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
)

// fill gives every field a value of its own.
func fill(v reflect.Value, next *int64) {
	if text, ok := v.Addr().Interface().(*fault.Text); ok {
		*next++
		*text = fault.Plain(time.Duration(*next).String())
		return
	}
	*next++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), next)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), next)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), next)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, next)
		fill(value, next)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(time.Duration(*next).String())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(float64(*next))
	case reflect.Func, reflect.Interface:
	default:
		v.SetInt(*next)
	}
}

// same compares the fields of got, at any depth, with those of the same names in want.
func same(t *testing.T, path string, got, want reflect.Value) {
	if text, ok := want.Interface().(fault.Text); ok {
		want = reflect.ValueOf(text.String())
	}
	switch got.Kind() {
	case reflect.Struct:
		for i := range got.NumField() {
			name := got.Type().Field(i).Name
			field := want.FieldByName(name)
			if !field.IsValid() {
				t.Errorf("%s has no field %s", path, name)
				continue
			}
			same(t, path+"."+name, got.Field(i), field)
		}
	case reflect.Slice:
		if got.Len() != want.Len() || got.Len() == 0 {
			t.Errorf("%s has %d values, want %d", path, got.Len(), want.Len())
			return
		}
		for i := range got.Len() {
			same(t, path, got.Index(i), want.Index(i))
		}
	case reflect.Pointer:
		same(t, path, got.Elem(), want.Elem())
	case reflect.Func, reflect.Interface:
	default:
		if got.IsZero() || !reflect.DeepEqual(got.Interface(), want.Convert(got.Type()).Interface()) {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
}

// TestWords: the constants have the words of the packages behind.
func TestWords(t *testing.T) {
	for got, want := range map[string]string{OwnToken: option.OwnToken, NoToken: option.NoToken, Usage: fault.Usage,
		Corrupt: fault.Corrupt, Limit: fault.Limit, Unreachable: fault.Unreachable, Interrupted: fault.Interrupted} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestEveryFieldArrives: no field of the public types is forgotten on its way to or from a build.
func TestEveryFieldArrives(t *testing.T) {
	var next int64
	var o BuildOptions
	fill(reflect.ValueOf(&o).Elem(), &next)
	same(t, "options", reflect.ValueOf(o), reflect.ValueOf(o.options()))

	var s report.Summary
	fill(reflect.ValueOf(&s).Elem(), &next)
	same(t, "summary", reflect.ValueOf(*summaryOf(&s)), reflect.ValueOf(s))

	var p report.Progress
	fill(reflect.ValueOf(&p).Elem(), &next)
	var got Progress
	hooks := (&BuildOptions{Progress: func(p Progress) { got = p }}).hooks()
	hooks.Progress(p)
	same(t, "progress", reflect.ValueOf(got), reflect.ValueOf(p))
}

// TestBuild: what a build says arrives, and a build that is stopped says so.
func TestBuild(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("Hello world\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	var reports []Progress
	var notices []string
	o := BuildOptions{Sources: []string{text}, Out: filepath.Join(t.TempDir(), "out"), Dedup: DedupExact,
		Progress: func(p Progress) { reports = append(reports, p) },
		Notice:   func(text string) { notices = append(notices, text) }}
	sum, err := Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(sum.Splits) != 1 || sum.Splits[0].Examples != 1 || sum.Documents != 100 || sum.DroppedBy["dedup"] != 99 ||
		sum.Formats["text"] != 1 {
		t.Errorf("%+v", sum)
	}
	if len(reports) == 0 || !reports[len(reports)-1].Done || reports[len(reports)-1].Train != 1 || len(notices) == 0 {
		t.Errorf("%d reports, the notices %q", len(reports), notices)
	}
	if sum, err = Build(t.Context(), o); err != nil || !sum.AlreadyBuilt {
		t.Errorf("the same build again: %+v, %v", sum, err)
	}

	o.Out += "2"
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		o    BuildOptions
		ctx  context.Context
		kind string
	}{
		{o, stopped, Interrupted},
		{BuildOptions{Sources: []string{"nothing.here"}}, t.Context(), Usage},
		{BuildOptions{Sources: []string{text}, Pack: "wraped"}, t.Context(), Usage},
		{BuildOptions{Sources: []string{text}, Out: o.Out, Memory: 1 << 20}, t.Context(), Limit},
	} {
		_, err := Build(c.ctx, c.o)
		var e Error
		if !errors.As(err, &e) || e.Kind() != c.kind {
			t.Errorf("%v, want the kind %s", err, c.kind)
		}
	}
}
