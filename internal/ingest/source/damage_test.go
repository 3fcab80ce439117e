package source

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/effort"
	"github.com/dsload/dsload/internal/ingest/source/cause"
)

// packed returns a sound file of each format and compression, by a name that says what it is.
func packed(t testing.TB) map[string]string {
	t.Helper()
	var text, jsonl, csv strings.Builder
	csv.WriteString("id,text\n")
	for i, line := range strings.Split(strings.TrimSpace(numbered(120)), "\n") {
		fmt.Fprintf(&text, "%s\n", line)
		fmt.Fprintf(&jsonl, "{\"id\":%d,\"text\":%q}\n", i, line)
		fmt.Fprintf(&csv, "%d,%s\n", i, line)
	}
	array := "[" + strings.ReplaceAll(strings.TrimSpace(jsonl.String()), "\n", ",\n") + "]"
	files := map[string]string{"a.json": array, "wiki.gz": gzipped(" \n = A = \n \n" + text.String()),
		"csv.gz": gzipped(csv.String()), "json.zst": zstded(t, array, 1<<10)}
	names := []string{"x/1.txt", "x/2.jsonl", "x/3.json", "x/4.csv", "x/5.txt"}
	var members []file
	for i, data := range []string{text.String(), jsonl.String(), array, csv.String(), "last"} {
		members = append(members, file{names[i], data})
	}
	files["a.tar"] = tarred(t, members...)
	files["a.tgz"] = gzipped(tarred(t, members...))
	files["deflate.zip"] = zipped(t, zip.Deflate, members...)
	files["store.zip"] = zipped(t, zip.Store, members...)
	files["one.zip"] = zipped(t, zip.Deflate, file{"a.jsonl", jsonl.String()})
	files["jsonl.gz"], files["jsonl.zst"] = gzipped(jsonl.String()), zstded(t, jsonl.String(), 1<<10)
	files["jsonl.lz4"], files["jsonl.sz"] = lz4ed(t, jsonl.String()), snappied(jsonl.String())
	for _, program := range []string{"xz", "bzip2"} {
		if path, err := exec.LookPath(program); err == nil {
			cmd := exec.Command(path, "-c")
			cmd.Stdin = strings.NewReader(jsonl.String())
			if out, err := cmd.Output(); err == nil {
				files["jsonl."+program] = string(out)
			}
		}
	}
	tables, err := filepath.Glob("columnar/testdata/*.[pa]*")
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	for _, name := range tables {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = string(data)
	}
	return files
}

// damagePlaces is how many places of each file are damaged.
func damagePlaces() int {
	if n, err := strconv.Atoi(os.Getenv("DSLOAD_DAMAGE")); err == nil && n > 0 {
		return n
	}
	return effort.Of(2, 7, 70)
}

// Wherever a file is cut off or changed, SkipDamaged reads what it can: it ends, says what was lost,
// gives the same for reads of any size, and continues from every position with the rest.
func TestSkipDamaged(t *testing.T) {
	effort.RacedElsewhere(t)
	for name, data := range packed(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			sound := dataOf(goodOf(skipDamaged(t, write(t, dir, name, data), 0)))
			for i, step := 0, len(data)/damagePlaces()+1; i < len(data); i += step {
				flipped := []byte(data)
				flipped[i] ^= 1 << (i % 8)
				for what, harmed := range map[string]string{"cut": data[:i], "changed": string(flipped)} {
					checkDamage(t, fmt.Sprintf("%s at %d", what, i), write(t, dir, "harmed/"+name, harmed), sound)
				}
			}
		})
	}
}

func goodOf(records []piece, _ error) []piece {
	return slices.DeleteFunc(slices.Clone(records), func(p piece) bool { return p.Err != nil })
}

func skipDamaged(t *testing.T, path string, chunk int) ([]piece, error) {
	t.Helper()
	set, err := Open(t.Context(), Options{Args: []string{path}, Framing: Framing{TextField: "text"}, SkipDamaged: true,
		chunkBytes: chunk})
	if err != nil {
		return nil, err
	}
	defer set.Close()
	return readFrom(t, set, Position{})
}

func checkDamage(t *testing.T, what, path string, sound []string) {
	t.Helper()
	all, err := skipDamaged(t, path, 0)
	var need *NeedError
	if errors.As(err, &need) {
		t.Errorf("%s: %v", what, err)
	}
	if err != nil { // the first bytes, by which it is known, are gone, or an unwanted column's type is strange
		if !errors.Is(err, cause.Binary) && !errors.Is(err, cause.Unsupported) && !errors.Is(err, cause.NoDocuments) &&
			!errors.Is(err, cause.UnknownField) && !errors.Is(err, cause.Usage) {
			t.Errorf("%s: %v", what, err)
		}
		return
	}
	again, err := skipDamaged(t, path, 1000)
	if w, g := outcome(all, nil), outcome(again, err); !slices.Equal(w, g) {
		t.Fatalf("%s, in small reads: %.300q, want %.300q", what, g, w)
	}
	good, bad := goodOf(all, nil), 0
	for _, p := range all {
		var damage *DamageError
		if errors.As(p.Err, &damage) {
			bad++
		}
	}
	if strings.HasPrefix(what, "cut") && len(good) < len(sound) && bad == 0 && len(all) == len(good) &&
		!strings.HasSuffix(path, ".sz") && len(all) > 0 && all[0].Format != Text && all[0].Format != Document {
		t.Errorf("%s: %d records of %d and not a word", what, len(good), len(sound))
	}
	for i := range all {
		if all[i].Err == nil && i+1 < len(all) && all[i+1].Err == nil && i%17 > 0 {
			continue
		}
		set, err := Open(t.Context(), Options{Args: []string{path}, Framing: Framing{TextField: "text"}, SkipDamaged: true})
		if err != nil {
			t.Fatal(err)
		}
		rest, err := readFrom(t, set, all[i].next)
		if w, g := outcome(all[i+1:], nil), outcome(rest, err); !slices.Equal(w, g) {
			t.Fatalf("%s, after record %d of %d: %.300q, want %.300q", what, i, len(all), g, w)
		}
		set.Close()
	}
}

// The lost rows and the rows read of a file of columns add up to all its rows.
func TestDamagedRowsAreCounted(t *testing.T) {
	for name, data := range packed(t) {
		if !strings.HasSuffix(name, ".parquet") {
			continue
		}
		footer := bytes.LastIndex([]byte(data[:len(data)-8]), []byte("schema"))
		lossy, places := 0, effort.Of(30, 101, 101)
		for i := 4; i < footer-40; i += 1 + footer/places {
			flipped := []byte(data)
			flipped[i] ^= 0x41
			all, err := skipDamaged(t, write(t, t.TempDir(), name, string(flipped)), 0)
			if err != nil {
				t.Fatalf("%s at %d: %v", name, i, err)
			}
			rows := int64(0)
			for _, p := range all {
				if p.Last {
					rows += p.Rows
				}
				if p.Err != nil {
					lossy++
				}
			}
			if rows != 40 {
				t.Errorf("%s at %d: %d rows of 40", name, i, rows)
			}
		}
		t.Logf("%s: %d places of %d cost a row", name, lossy, places)
	}
}

// The bad record says what was read before the damage, and the next file is read.
func TestDamageIsTold(t *testing.T) {
	dir := t.TempDir()
	var jsonl strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&jsonl, "{\"text\":\"row %d %x\"}\n", i, i*i*7919)
	}
	whole := gzipped(jsonl.String())
	files := []file{{"1.jsonl", "{\"text\":\"one\"}\n"}, {"2.json", "[{\"text\":\"two\"} {}]"}, {"3.txt", "three"}}
	stored := zipped(t, zip.Store, append(files, file{"4.txt", strings.Repeat("four ", 99)}, file{"5.txt", "five"})...)
	for name, c := range map[string]struct {
		data, want string
		member     string
		good       int
	}{
		"cut.jsonl.gz": {whole[:len(whole)/2], "rows of the file were read before, the rest of it is lost", "", -1},
		"sum.jsonl.gz": {whole[:len(whole)-5] + "\x00" + whole[len(whole)-4:], "2000 rows of the file were read before",
			"", 2000},
		"none.parquet": {"PAR1" + strings.Repeat("\x00", 100), "no row of the file could be read before", "", 0},
		"a.tar":        {tarred(t, files...), "the rest of the member is lost", "2.json", 3},
		"a.zip":        {strings.Replace(stored, "five", "fife", 1), "the checksum of 5.txt differs", "5.txt", 5},
	} {
		bad, good := write(t, dir, name, c.data), write(t, dir, "zz.txt", "the next file\n")
		set := openSet(t, Options{Args: []string{bad, good}, Framing: Framing{TextField: "text"}, SkipDamaged: true})
		all, err := readFrom(t, set, Position{})
		if err != nil {
			t.Fatal(name, err)
		}
		ok := dataOf(goodOf(all, nil))
		if len(ok) == 0 || ok[len(ok)-1] != "the next file" || c.good >= 0 && len(ok) != c.good+1 {
			t.Errorf("%s: %d good records, the last of them %q", name, len(ok), ok[max(0, len(ok)-1):])
		}
		told := false
		for _, p := range all {
			var e *RecordError
			if errors.As(p.Err, &e) && strings.Contains(e.Error(), c.want) && strings.Contains(e.Error(), name) {
				told = told || e.Member == c.member
			}
		}
		if !told {
			t.Errorf("%s: %q", name, show(all)[max(0, len(all)-5):])
		}
		if name == "none.parquet" {
			continue
		}
		strict, err := Open(t.Context(), Options{Args: []string{bad, good}, Framing: Framing{TextField: "text"}})
		if err != nil {
			t.Fatal(name, err)
		}
		var input *cause.InputError
		if _, err = readFrom(t, strict, Position{}); !errors.As(err, &input) || input.Row == 0 || !IsDamage(err) {
			t.Errorf("%s without SkipDamaged: %v", name, err)
		}
	}
}
